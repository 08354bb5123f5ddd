// Study: a YAML file (and what it extends) as settings, blocks, axes and conditions.
#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/grid/expression.h"
#include "core/grid/node.h"
#include "core/grid/plan.h"

namespace assay::grid {

/// Where a value comes from; later wins.
enum class Layer { defaults, base, command_line, block_set, axis, derived };

inline constexpr size_t kUnknownKey = static_cast<size_t>(-1);

/// One configuration key with its value as written.
struct Setting {
  std::string key{};  ///< canonical: "memory.name", never "memory"
  const Node* value = nullptr;
  Mark key_mark{};
  Layer layer = Layer::base;
  size_t id = kUnknownKey;  ///< of the key, once plugins are known (Keys)
};

using Settings = std::vector<Setting>;

/// An expression at its place.
struct Condition {
  Expression expression;
  Mark mark;
};

/// One point of an axis: what it sets, all at once.
struct AxisPoint {
  std::string label{};
  std::string value_json{};
  Settings settings{};
  const Condition* when = nullptr;
  Mark mark{};
};

struct Axis {
  std::string name{};
  size_t id = 0;  ///< order of first appearance in the study
  std::vector<AxisPoint> points{};
  const Condition* when = nullptr;
  Mark mark{};
};

struct Block {
  enum class Kind { product, zip, concat, cells };
  Kind kind = Kind::product;
  std::vector<Axis> axes{};               ///< of a product or zip
  std::vector<Block> blocks{};            ///< of a product, zip or concat
  std::vector<std::vector<Axis>> rows{};  ///< of cells: axes of one point each
  Settings set{};
  const Condition* when = nullptr;
  std::optional<Axis> label{};  ///< one point that names the block's cells
  Mark mark{};
};

struct Derived {
  std::string key{};
  Mark key_mark{};
  Condition condition{};
};

/// All keys must match, or the expression hold.
struct Matcher {
  struct Term {
    std::string key{};
    std::vector<const Node*> values{};
    Mark mark{};
  };
  std::vector<Term> terms{};
  const Condition* condition = nullptr;
  Mark mark{};
};

struct Study {
  std::vector<std::shared_ptr<const Source>> sources;
  Node root;                     ///< after extends and the environment
  std::deque<Node> extra_nodes;  ///< values of the command line
  std::deque<Condition> conditions;

  std::string name;
  std::string yaml_text;
  std::filesystem::path file;
  std::vector<std::filesystem::path> plugin_folders;
  Settings defaults, base, command_line;
  Block grid;
  std::vector<Derived> derive;
  std::vector<std::vector<Axis>> include;
  std::vector<Matcher> exclude;
  const Condition* when = nullptr;
  std::optional<Axis> seeds;
  int repeats = 1;
  std::vector<std::string> nuisance;
  std::map<std::string, const Node*> run;  ///< keys of `run:` without "run."
  std::vector<std::string> axis_names;     ///< by Axis::id

  Mark start() const;  ///< of the file's first line
};

/// Reads the file; errors of its form go to `findings`. Keys of plugins are not known yet. Throws
/// DiagnosticError when nothing of it can be used.
std::unique_ptr<Study> read_study(const PlanRequest& request, Findings& findings);

}  // namespace assay::grid
