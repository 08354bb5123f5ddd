// The block part of the grid language.
#include "core/grid/blocks.h"

#include <algorithm>

#include "core/base/nearest.h"

namespace assay::grid {
namespace {

constexpr size_t kLongestLabel = 60;

/// A value as a label: a component's name, then what else it sets.
std::string label_of(const Node& value) {
  std::string text;
  if (value.is_map()) {
    for (const Member& member : value.members) {
      const bool names = member.key == "name";
      text += (text.empty() ? "" : "-") + (names ? "" : member.key + "-") + label_of(member.value);
    }
  } else if (value.is_sequence()) {
    for (const Node& item : value.items) text += (text.empty() ? "" : "-") + label_of(item);
  } else {
    text = value.is_null() ? "default" : value.text;
  }
  return text.substr(0, kLongestLabel);
}

const char* kind_key(Block::Kind kind) {
  switch (kind) {
    case Block::Kind::product:
      return "product";
    case Block::Kind::zip:
      return "zip";
    case Block::Kind::concat:
      return "concat";
    case Block::Kind::cells:
      return "cells";
  }
  return "";
}

}  // namespace

void BlockReader::check_keys(const Node& map, std::initializer_list<std::string_view> allowed,
                             const std::string& what) {
  const std::vector<std::string> names(allowed.begin(), allowed.end());
  for (const Member& member : map.members) {
    if (std::find(names.begin(), names.end(), member.key) != names.end()) continue;
    Mark mark = member.mark;
    mark.length = code_points(member.key);
    const std::string near = did_you_mean(nearest(member.key, names));
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    findings_.error("G04", mark, "unknown key '" + member.key + "' in " + what,
                    {near.empty() ? "allowed: " + list : near});
  }
}

size_t BlockReader::axis_id(const std::string& name) {
  auto& names = study_.axis_names;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) names.push_back(name);
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

const Condition* BlockReader::condition(const Node& node) {
  if (!node.is_scalar()) {
    findings_.error("G16", node.mark, "expected an expression");
    return nullptr;
  }
  try {
    study_.conditions.push_back({Expression::compile(node.text), node.mark});
    return &study_.conditions.back();
  } catch (const ExpressionError& error) {
    Mark mark = node.mark;
    mark.column += static_cast<int>(error.offset) + (node.quoted ? 1 : 0);
    mark.length = 1;
    const std::string line =
        mark.line > 0 && mark.source ? mark.source->lines[mark.line - 1] : std::string();
    if (line.find(node.text) == std::string::npos) mark = node.mark;  // folded over lines
    findings_.error(error.id, mark, error.what());
    return nullptr;
  }
}

void BlockReader::check_axis_key(const std::string& key, const Mark& mark) {
  Mark whole = mark;
  whole.length = code_points(key);
  if (key == "run" || key.starts_with("run.")) {
    findings_.error("G17", whole,
                    "'" + key +
                        "' is an execution key, part of no id: it cannot be an axis. Set "
                        "it under run:");
  }
}

AxisPoint BlockReader::point(const std::string& key, const Node& value, const Mark& mark) {
  return {.label = label_of(value),
          .value_json = to_json_text(value),
          .settings = settings_of(value, key, mark, Layer::axis, findings_),
          .mark = value.mark};
}

AxisPoint BlockReader::variant(const Node& node) {
  if (!node.is_map()) {
    findings_.error("G15", node.mark, "a variant is a map {label: text, set: {key: value}}");
    return {.mark = node.mark};
  }
  check_keys(node, {"label", "set", "when"}, "a variant");
  AxisPoint point{.mark = node.mark};
  if (const Node* label = node.find("label"); label && label->is_scalar()) {
    point.label = label->text;
  } else {
    findings_.error("G15", node.mark, "a variant needs a 'label'");
  }
  point.value_json = "{}";
  if (const Member* set = node.member("set")) {
    if (!set->value.is_map()) {
      findings_.error("G15", set->value.mark, "'set' is a map {key: value}");
    } else {
      point.value_json = to_json_text(set->value);
      point.settings = settings_of(set->value, "", set->mark, Layer::axis, findings_);
      for (const Setting& s : point.settings) check_axis_key(s.key, s.key_mark);
    }
  }
  if (const Node* when = node.find("when")) point.when = condition(*when);
  return point;
}

Axis BlockReader::variants(const std::string& name, const Mark& mark, const Node& list) {
  Axis axis{.name = name, .id = axis_id(name), .mark = mark};
  if (name.find('.') != std::string::npos) {
    findings_.error("G15", mark, "an axis of variants has a name of its own, without dots");
  }
  for (const Node& item : list.items) {
    axis.points.push_back(variant(item));
    const AxisPoint& added = axis.points.back();
    for (size_t i = 0; i + 1 < axis.points.size(); ++i) {
      if (axis.points[i].label != added.label || added.label.empty()) continue;
      findings_.error("G05", item.mark,
                      "variant '" + added.label + "' of '" + name + "' is listed twice; first at " +
                          axis.points[i].mark.position());
    }
  }
  return axis;
}

Axis BlockReader::values(const std::string& name, const Mark& mark, const Node& list) {
  check_axis_key(name, mark);
  Axis axis{.name = name, .id = axis_id(name), .mark = mark};
  for (const Node& item : list.items) axis.points.push_back(point(name, item, mark));
  return axis;
}

void BlockReader::labels(Axis& axis, const Node& list) {
  if (!list.is_sequence() || list.items.size() != axis.points.size()) {
    findings_.error("G06", list.mark,
                    "'" + axis.name + "' has " + std::to_string(axis.points.size()) +
                        " values and " + std::to_string(list.items.size()) + " labels");
    return;
  }
  for (size_t i = 0; i < axis.points.size(); ++i) axis.points[i].label = list.items[i].text;
}

Axis BlockReader::axis(const Member& member) {
  Mark mark = member.mark;
  mark.length = code_points(member.key);
  const Node& node = member.value;
  Axis axis{.name = member.key, .id = axis_id(member.key), .mark = mark};
  if (node.is_sequence()) {
    axis = values(member.key, mark, node);
  } else if (node.is_map() && node.find("variants")) {
    check_keys(node, {"variants", "when"}, "an axis of variants");
    axis = variants(member.key, mark, *node.find("variants"));
  } else if (node.is_map() && node.find("values")) {
    check_keys(node, {"values", "labels", "when"}, "an axis");
    axis = values(member.key, mark, *node.find("values"));
    if (const Node* list = node.find("labels")) labels(axis, *list);
  } else {
    findings_.error("G15", mark,
                    "axis '" + member.key +
                        "' must be a list of values, or have 'values:' or "
                        "'variants:'");
    return axis;
  }
  if (const Node* when = node.find("when")) axis.when = condition(*when);
  if (axis.points.empty()) {
    findings_.error("G15", mark, "axis '" + member.key + "' has no values: it leaves no cell");
  }
  return axis;
}

void BlockReader::parts(Block& block, const Node& content) {
  const bool map = content.is_map();
  if (block.kind == Block::Kind::concat || block.kind == Block::Kind::cells
          ? !content.is_sequence()
          : !map && !content.is_sequence()) {
    findings_.error("G15", content.mark,
                    std::string("'") + kind_key(block.kind) + "' must be " +
                        (block.kind == Block::Kind::concat  ? "a list of blocks"
                         : block.kind == Block::Kind::cells ? "a list of {key: value}"
                                                            : "a map of axes or a list of blocks"));
    return;
  }
  if (map) {
    for (const Member& member : content.members) block.axes.push_back(axis(member));
  } else if (block.kind == Block::Kind::cells) {
    for (const Node& item : content.items) block.rows.push_back(row(item));
  } else {
    for (const Node& item : content.items) block.blocks.push_back(this->block(item, item.mark));
  }
}

Block BlockReader::block(const Node& node, const Mark& mark) {
  Block block{.mark = mark};
  std::vector<const Member*> kinds;
  for (const auto kind :
       {Block::Kind::product, Block::Kind::zip, Block::Kind::concat, Block::Kind::cells}) {
    if (!node.is_map()) break;
    if (const Member* member = node.member(kind_key(kind))) {
      kinds.push_back(member);
      block.kind = kind;
    }
  }
  if (kinds.size() != 1) {
    findings_.error("G15", kinds.size() > 1 ? kinds[1]->mark : mark,
                    "a block has exactly one of product, zip, concat, cells");
    return block;
  }
  check_keys(node, {"product", "zip", "concat", "cells", "set", "when", "label"}, "a block");
  if (const Member* set = node.member("set")) {
    block.set = settings_of(set->value, "", set->mark, Layer::block_set, findings_);
    for (const Setting& s : block.set) check_axis_key(s.key, s.key_mark);
  }
  if (const Node* when = node.find("when")) block.when = condition(*when);
  if (const Member* label = node.member("label")) {  // names the cells of the block
    Axis axis{.name = "block", .id = axis_id("block"), .mark = label->mark};
    axis.points.push_back({.label = label->value.text,
                           .value_json = to_json_text(label->value),
                           .mark = label->value.mark});
    block.label = std::move(axis);
  }
  parts(block, kinds[0]->value);
  return block;
}

std::vector<Axis> BlockReader::row(const Node& node) {
  std::vector<Axis> axes;
  if (!node.is_map()) {
    findings_.error("G15", node.mark, "a cell is a map {key: value}");
    return axes;
  }
  for (const Member& member : node.members) {
    Mark mark = member.mark;
    mark.length = code_points(member.key);
    check_axis_key(member.key, mark);
    Axis axis{.name = member.key, .id = axis_id(member.key), .mark = mark};
    axis.points.push_back(point(member.key, member.value, mark));
    axes.push_back(std::move(axis));
  }
  return axes;
}

Matcher BlockReader::matcher(const Node& node) {
  Matcher matcher{.mark = node.mark};
  if (node.is_scalar()) {
    matcher.condition = condition(node);
    return matcher;
  }
  if (!node.is_map() || node.members.empty()) {
    findings_.error("G15", node.mark,
                    "a matcher is a map {key: value or [values]} or an expression");
    return matcher;
  }
  for (const FlatMember& member : flatten(node, "", node.mark, findings_)) {
    Matcher::Term term{.key = member.key, .mark = member.mark};
    term.mark.length = code_points(member.key);
    if (!member.value->is_sequence()) term.values.push_back(member.value);
    for (const Node& item : member.value->items) term.values.push_back(&item);
    matcher.terms.push_back(std::move(term));
  }
  return matcher;
}

}  // namespace assay::grid
