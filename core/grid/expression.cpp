// Evaluation of expressions: exact whole numbers, undefined keys, lazy and/or.
#include "core/grid/expression.h"

#include <algorithm>
#include <cmath>

#include "assay/glob.h"

namespace assay::grid {
namespace {

using Op = Operation;

bool truth(const Value& value) {
  if (is_undefined(value)) return false;
  if (const auto* b = get_if<bool>(value)) return *b;
  throw ExpressionError("G16", print(value) + " is neither true nor false");
}

const char* symbol(Op operation) {
  switch (operation) {
    case Op::add:
      return "+";
    case Op::subtract:
      return "-";
    case Op::multiply:
      return "*";
    case Op::divide:
      return "/";
    case Op::remainder:
      return "%";
    default:
      return "?";
  }
}

double real(const Value& value, const char* what) {
  if (const auto* d = get_if<double>(value)) return *d;
  if (const auto* i = get_if<int64_t>(value)) return static_cast<double>(*i);
  throw ExpressionError("G16",
                        print(value) + " is no number: it cannot stand beside '" + what + "'");
}

/// -1, 0 or 1; throws for values without a common order.
int order(const Value& a, const Value& b) {
  if (const auto* i = get_if<int64_t>(a), *j = get_if<int64_t>(b); i && j) {
    return *i < *j ? -1 : *i > *j;
  }
  if (const auto* s = get_if<std::string>(a), *t = get_if<std::string>(b); s && t) {
    return *s < *t ? -1 : *s > *t;
  }
  const double x = real(a, "<"), y = real(b, "<");
  return x < y ? -1 : x > y;
}

bool contains(const Value& list, const Value& item) {
  const auto* items = get_if<std::vector<Value>>(list);
  if (!items) throw ExpressionError("G16", "'in' needs a list on its right, got " + print(list));
  for (const Value& candidate : *items) {
    if (equal(candidate, item)) return true;
  }
  return false;
}

Value compare(Op operation, const Value& a, const Value& b) {
  if (operation == Op::equal) return equal(a, b);
  if (operation == Op::not_equal) return !equal(a, b);
  if (is_undefined(a) || is_undefined(b)) return operation == Op::not_in;
  if (operation == Op::in) return contains(b, a);
  if (operation == Op::not_in) return !contains(b, a);
  const int sign = order(a, b);
  if (operation == Op::less) return sign < 0;
  if (operation == Op::less_equal) return sign <= 0;
  if (operation == Op::greater) return sign > 0;
  return sign >= 0;
}

/// Floor semantics are not needed: keys are not negative; C++'s remainder is used as it is.
Value whole(Op operation, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  if (operation == Op::add) overflow = __builtin_add_overflow(a, b, &result);
  if (operation == Op::subtract) overflow = __builtin_sub_overflow(a, b, &result);
  if (operation == Op::multiply) overflow = __builtin_mul_overflow(a, b, &result);
  if (operation == Op::divide || operation == Op::remainder) {
    overflow = b == -1 && a == std::numeric_limits<int64_t>::min();
    if (!overflow) result = operation == Op::divide ? a / b : a % b;
  }
  if (overflow) {
    throw ExpressionError("G09", std::to_string(a) + " " + symbol(operation) + " " +
                                     std::to_string(b) + " is too large for a whole number");
  }
  return result;
}

Value reals(Op operation, double a, double b) {
  if (operation == Op::add) return a + b;
  if (operation == Op::subtract) return a - b;
  if (operation == Op::multiply) return a * b;
  return operation == Op::divide ? a / b : std::fmod(a, b);
}

std::vector<std::string> texts(const Value& list) {
  std::vector<std::string> result;
  const auto* items = get_if<std::vector<Value>>(list);
  if (!items) throw ExpressionError("G09", "unmatched() needs two lists, not " + print(list));
  for (const Value& item : *items) {
    const auto* text = get_if<std::string>(item);
    if (!text) throw ExpressionError("G09", "unmatched() compares text, not " + print(item));
    result.push_back(*text);
  }
  return result;
}

/// Globs that match none of the names; none are without a list of names.
Value unmatched(const Value& globs, const Value& names) {
  std::vector<Value> left;
  if (is_undefined(globs) || is_undefined(names)) return left;
  const std::vector<std::string> all = texts(names);
  for (std::string& glob : texts(globs)) {
    const auto used = [&](const std::string& name) { return matches(glob, name); };
    if (std::none_of(all.begin(), all.end(), used)) left.emplace_back(std::move(glob));
  }
  return left;
}

bool is_leaf(const ExpressionNode& node) {
  return node.operation == Op::constant || node.operation == Op::name;
}

}  // namespace

bool Expression::holds(const Scope& scope) const { return truth(evaluate(scope)); }

Value Expression::evaluate(size_t index, const Scope& scope) const {
  const ExpressionNode& node = nodes_[index];
  switch (node.operation) {
    case Op::constant:
      return node.constant;
    case Op::name:
      return scope.value(node.name);
    case Op::logical_not:
      return !truth(evaluate(node.operands[0], scope));
    case Op::logical_and:
      return truth(evaluate(node.operands[0], scope)) && truth(evaluate(node.operands[1], scope));
    case Op::logical_or:
      return truth(evaluate(node.operands[0], scope)) || truth(evaluate(node.operands[1], scope));
    case Op::add:
    case Op::subtract:
    case Op::multiply:
    case Op::divide:
    case Op::remainder:
      return arithmetic(node, scope);
    case Op::list:
    case Op::negate:
    case Op::minimum:
    case Op::maximum:
    case Op::ceil_div:
    case Op::defined:
    case Op::unmatched:
      return call(node, scope);
    default:
      return compare(node.operation, evaluate(node.operands[0], scope),
                     evaluate(node.operands[1], scope));
  }
}

Value Expression::arithmetic(const ExpressionNode& node, const Scope& scope) const {
  const Value a = evaluate(node.operands[0], scope), b = evaluate(node.operands[1], scope);
  if (is_undefined(a) || is_undefined(b)) return {};
  const auto *i = get_if<int64_t>(a), *j = get_if<int64_t>(b);
  if (!i || !j) {
    const char* what = symbol(node.operation);
    return reals(node.operation, real(a, what), real(b, what));
  }
  const bool divides = node.operation == Op::divide || node.operation == Op::remainder;
  if (divides && *j == 0) {
    throw ExpressionError("G09", substituted(node.operands[0], scope) + " " +
                                     symbol(node.operation) + " 0 has no value");
  }
  if (node.operation == Op::divide && *j != -1 && *i % *j != 0) not_whole(node, scope);
  return whole(node.operation, *i, *j);
}

Value Expression::call(const ExpressionNode& node, const Scope& scope) const {
  std::vector<Value> values;
  for (const size_t operand : node.operands) values.push_back(evaluate(operand, scope));
  if (node.operation == Op::list) return values;
  if (node.operation == Op::defined) return !is_undefined(values[0]);
  if (node.operation == Op::unmatched) return unmatched(values[0], values[1]);
  for (const Value& value : values) {
    if (is_undefined(value)) return {};
  }
  if (node.operation == Op::negate) {
    const auto* i = get_if<int64_t>(values[0]);
    return i ? whole(Op::subtract, 0, *i) : Value(-real(values[0], "-"));
  }
  if (node.operation == Op::ceil_div) {
    const auto *i = get_if<int64_t>(values[0]), *j = get_if<int64_t>(values[1]);
    if (!i || !j || *i < 0 || *j <= 0) {
      throw ExpressionError("G09", "ceil_div(" + print(values[0]) + ", " + print(values[1]) +
                                       ") needs whole numbers, the second above 0");
    }
    return *i / *j + (*i % *j != 0);
  }
  const int wanted = node.operation == Op::minimum ? -1 : 1;
  Value best = values[0];
  for (const Value& value : values) {
    if (order(value, best) == wanted) best = value;
  }
  return best;
}

std::string Expression::substituted(size_t index, const Scope& scope) const {
  const ExpressionNode& node = nodes_[index];
  if (is_leaf(node)) return print(evaluate(index, scope));
  if (node.operation < Op::add || node.operation > Op::remainder) {
    return print(evaluate(index, scope));
  }
  std::string sides[2];
  for (int i = 0; i < 2; ++i) {
    sides[i] = substituted(node.operands[i], scope);
    if (!is_leaf(nodes_[node.operands[i]])) sides[i] = "(" + sides[i] + ")";
  }
  return sides[0] + " " + symbol(node.operation) + " " + sides[1];
}

void Expression::not_whole(const ExpressionNode& node, const Scope& scope) const {
  std::string full, plain;
  for (int i = 0; i < 2; ++i) {
    const bool leaf = is_leaf(nodes_[node.operands[i]]);
    const std::string side = substituted(node.operands[i], scope);
    full += (i ? " / " : "") + (leaf ? side : "(" + side + ")");
    plain += (i ? " / " : "") + print(evaluate(node.operands[i], scope));
  }
  std::string message = (full == plain ? plain : full + " = " + plain) + " is not a whole number. ";
  const ExpressionNode& left = nodes_[node.operands[0]];
  message += left.operation == Op::name ? "Change " + names_[left.name].text + " or use ceil_div"
                                        : "Change a value or use ceil_div";
  throw ExpressionError("G09", message);
}

}  // namespace assay::grid
