// Blocks: reading of `grid:`, `include:`, `exclude:`, `when` and the compared arms.
#pragma once

#include "core/grid/layers.h"
#include "core/grid/study.h"

namespace assay::grid {

/// Reads the parts of a study that hold axes and expressions into `study`.
class BlockReader {
 public:
  BlockReader(Study& study, Findings& findings) : study_(study), findings_(findings) {}

  Block block(const Node& node, const Mark& mark);
  /// {key: value}: one-point axes, as `cells` and `include` list them.
  std::vector<Axis> row(const Node& node);
  Matcher matcher(const Node& node);
  /// Null, with G16, when it cannot be read.
  const Condition* condition(const Node& node);
  /// An axis of variants: {label, set, when} each.
  Axis variants(const std::string& name, const Mark& mark, const Node& list);
  Axis values(const std::string& name, const Mark& mark, const Node& list);

 private:
  Axis axis(const Member& member);
  AxisPoint point(const std::string& key, const Node& value, const Mark& mark);
  AxisPoint variant(const Node& node);
  void labels(Axis& axis, const Node& list);
  void parts(Block& block, const Node& content);
  void check_axis_key(const std::string& key, const Mark& mark);
  void check_keys(const Node& map, std::initializer_list<std::string_view> allowed,
                  const std::string& what);
  size_t axis_id(const std::string& name);

  Study& study_;
  Findings& findings_;
};

}  // namespace assay::grid
