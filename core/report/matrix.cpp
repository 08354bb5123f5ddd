// Slugs are the labels of all axes in grid order, joined by '_': that is how points are placed.
#include "core/report/matrix.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace assay::report {
namespace {

constexpr const char* kSeed = "seed";

std::vector<std::string> parts_of(const std::string& slug) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= slug.size();) {
    const size_t end = std::min(slug.find('_', begin), slug.size());
    parts.push_back(slug.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// A label as slugs spell it: lower case, other characters become '-'.
std::string slug_part(const KeyValue& axis) {
  std::string text = axis.first == kSeed ? "s" : "";
  for (const unsigned char c : axis.second) {
    const bool safe = std::isalnum(c) != 0 || c == '.' || c == '-';
    text += safe ? static_cast<char>(std::tolower(c)) : '-';
  }
  return text;
}

/// All axes of a cell in the order of its slug; nothing if the slug does not have one part each.
std::vector<std::string> ordered_axes(const CellRow& cell) {
  const std::vector<std::string> parts = parts_of(cell.slug);
  if (parts.size() != cell.axes.size()) return {};
  std::vector<std::string> order;
  std::vector<KeyValue> left = cell.axes;
  for (const std::string& part : parts) {
    const auto found = std::find_if(left.begin(), left.end(),
                                    [&](const KeyValue& axis) { return slug_part(axis) == part; });
    if (found == left.end()) return {};
    order.push_back(found->first);
    left.erase(found);
  }
  return order;
}

/// The order that most cells agree on: one label may fit two axes, all labels together do not.
std::vector<std::string> all_axes(const std::vector<CellRow>& cells) {
  std::map<std::vector<std::string>, size_t> votes;
  std::set<std::string> names;
  for (const CellRow& cell : cells) {
    for (const KeyValue& axis : cell.axes) names.insert(axis.first);
    if (auto order = ordered_axes(cell); !order.empty()) ++votes[std::move(order)];
  }
  const auto best = std::max_element(
      votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (best != votes.end() && best->first.size() == names.size()) return best->first;
  return {names.begin(), names.end()};
}

std::string label_of(const CellRow& cell, const std::string& axis) {
  const auto found = std::find_if(cell.axes.begin(), cell.axes.end(),
                                  [&](const KeyValue& own) { return own.first == axis; });
  return found == cell.axes.end() ? "" : found->second;
}

/// Label of an axis by its part of a slug; the part itself for a label that no cell has.
std::string label_for(const std::vector<CellRow>& cells, const std::string& axis,
                      const std::string& part) {
  for (const CellRow& cell : cells) {
    const std::string label = label_of(cell, axis);
    if (!label.empty() && slug_part({axis, label}) == part) return label;
  }
  return part;
}

std::vector<std::string> place(const std::string& slug, const std::vector<CellRow>& cells,
                               const std::vector<std::string>& all,
                               const std::vector<std::string>& axes) {
  const std::vector<std::string> parts = parts_of(slug);
  if (parts.size() != all.size()) return {};
  std::vector<std::string> labels;
  for (const std::string& axis : axes) {
    const auto at = std::find(all.begin(), all.end(), axis) - all.begin();
    labels.push_back(label_for(cells, axis, parts[static_cast<size_t>(at)]));
  }
  return labels;
}

}  // namespace

std::vector<std::string> axes_of(const std::vector<CellRow>& cells) {
  std::vector<std::string> axes = all_axes(cells);
  std::erase(axes, kSeed);
  return axes;
}

std::vector<std::string> labels_of(const std::vector<const CellRow*>& cells,
                                   const std::vector<std::string>& axes) {
  std::vector<std::string> labels;
  for (const std::string& axis : axes) {
    const std::string label = label_of(*cells.front(), axis);
    const bool equal = std::all_of(cells.begin(), cells.end(), [&](const CellRow* cell) {
      return label_of(*cell, axis) == label;
    });
    labels.push_back(equal ? label : "");
  }
  return labels;
}

std::vector<Hole> load_holes(const store::Reader& reader, int64_t study_id,
                             const std::vector<CellRow>& cells,
                             const std::vector<std::string>& axes) {
  const store::Table rows = reader.query(
      "SELECT slug, reason, coalesce(rule_id, rule) rule FROM plan_skips WHERE study_id=?1"
      " AND rule<>'duplicate' ORDER BY seq",
      {study_id});
  const std::vector<std::string> all = all_axes(cells);
  std::vector<Hole> holes;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    Hole hole{.slug = *store::text(rows.at(i, "slug")),
              .reason = *store::text(rows.at(i, "reason")),
              .rule = *store::text(rows.at(i, "rule"))};
    hole.labels = place(hole.slug, cells, all, axes);
    holes.push_back(std::move(hole));
  }
  return holes;
}

}  // namespace assay::report
