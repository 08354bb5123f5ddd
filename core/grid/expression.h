// Expression: the language of `when`, `derive`, `--filter`, `exclude` and plugin rules. Compiled
// once, evaluated for every cell.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/grid/value.h"

namespace assay::grid {

/// A mistake in the text (`offset` in bytes) or in what it computes (offset of no use).
class ExpressionError : public std::runtime_error {
 public:
  ExpressionError(std::string id, const std::string& message, size_t offset = 0, size_t length = 1)
      : std::runtime_error(message), id(std::move(id)), offset(offset), length(length) {}
  std::string id;  ///< G16, or G09 for arithmetic without a whole result
  size_t offset;
  size_t length;
};

/// A name in the text; `defined_only` if it stands in defined(name) and nowhere else.
struct ExpressionName {
  std::string text;
  size_t offset = 0;
};

/// Gives the value of the i-th of Expression::names().
class Scope {
 public:
  virtual ~Scope() = default;
  virtual Value value(size_t name) const = 0;
};

enum class Operation {
  constant,
  name,
  list,  // leaves and lists
  negate,
  logical_not,  // one operand
  add,
  subtract,
  multiply,
  divide,
  remainder,  // two
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,  // two
  logical_and,
  logical_or,  // two, lazily
  minimum,
  maximum,
  ceil_div,
  defined,
  unmatched  // calls
};

struct ExpressionNode {
  Operation operation = Operation::constant;
  Value constant{};
  size_t name = 0;
  std::vector<size_t> operands{};  ///< indices of nodes
};

class Expression {
 public:
  /// Throws ExpressionError G16.
  static Expression compile(std::string_view text);

  const std::string& text() const { return text_; }
  const std::vector<ExpressionName>& names() const { return names_; }

  /// Throws ExpressionError for text in arithmetic and for a division that is not exact.
  Value evaluate(const Scope& scope) const { return evaluate(root_, scope); }

  /// evaluate() read as yes or no; undefined is no, anything but a bool is an error.
  bool holds(const Scope& scope) const;

 private:
  friend class ExpressionBuilder;
  Value evaluate(size_t node, const Scope& scope) const;
  Value arithmetic(const ExpressionNode& node, const Scope& scope) const;
  Value call(const ExpressionNode& node, const Scope& scope) const;
  std::string substituted(size_t node, const Scope& scope) const;
  [[noreturn]] void not_whole(const ExpressionNode& node, const Scope& scope) const;

  std::string text_;
  std::vector<ExpressionNode> nodes_;
  std::vector<ExpressionName> names_;
  size_t root_ = 0;
};

}  // namespace assay::grid
