// Cartesian products, zips and concatenations of axes and blocks.
#include "core/grid/expand.h"

#include <algorithm>
#include <limits>
#include <map>

namespace assay::grid {
namespace {

int64_t times(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::numeric_limits<int64_t>::max() : result;
}

int64_t plus(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? std::numeric_limits<int64_t>::max() : result;
}

/// What can be zipped or multiplied: an axis or a block.
struct Part {
  std::string name;
  Mark mark;
  int64_t size = 0;
};

std::vector<Part> parts_of(const Block& block, Findings& findings) {
  std::vector<Part> parts;
  for (const Axis& axis : block.axes) {
    parts.push_back({axis.name, axis.mark, static_cast<int64_t>(axis.points.size())});
  }
  for (const Block& inner : block.blocks) {
    parts.push_back({"a block", inner.mark, count_points(inner, findings)});
  }
  return parts;
}

std::string count_of(const Part& part) {
  const bool block = part.name == "a block";
  return (block ? part.name : "'" + part.name + "'") + " has " + std::to_string(part.size) +
         (block            ? " cells"
          : part.size == 1 ? " value"
                           : " values");
}

void check_zip(const std::vector<Part>& parts, Findings& findings) {
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].size == parts[0].size) continue;
    findings.error("G06", parts[0].mark,
                   "zip needs equal lengths: " + count_of(parts[0]) + ", " + count_of(parts[i]) +
                       " (" + parts[i].mark.position() + ")");
    return;
  }
}

using KeyPlaces = std::map<std::string, Mark>;

void keys_of(const Axis& axis, KeyPlaces& keys) {
  keys.emplace(axis.name, axis.mark);
  for (const AxisPoint& point : axis.points) {
    for (const Setting& s : point.settings) keys.emplace(s.key, s.key_mark);
  }
}

void keys_of(const Block& block, KeyPlaces& keys) {
  for (const Axis& axis : block.axes) keys_of(axis, keys);
  for (const auto& row : block.rows) {
    for (const Axis& axis : row) keys_of(axis, keys);
  }
  for (const Block& inner : block.blocks) keys_of(inner, keys);
}

/// Two factors of a product or zip that set one key would overwrite each other in silence.
void check_overlap(const Block& block, Findings& findings) {
  KeyPlaces seen;
  const auto add = [&](const auto& part) {
    KeyPlaces keys;
    keys_of(part, keys);
    for (const auto& [key, mark] : keys) {
      const auto [first, fresh] = seen.emplace(key, mark);
      if (fresh) continue;
      findings.error("G05", mark,
                     "key '" + key + "' is set by two axes; first at " + first->second.position());
    }
  };
  for (const Axis& axis : block.axes) add(axis);
  for (const Block& inner : block.blocks) add(inner);
}

void append(Draft& draft, const Draft& other) {
  draft.picks.insert(draft.picks.end(), other.picks.begin(), other.picks.end());
  draft.blocks.insert(draft.blocks.end(), other.blocks.begin(), other.blocks.end());
}

std::vector<Draft> drafts_of(const Axis& axis) {
  std::vector<Draft> drafts;
  for (const AxisPoint& point : axis.points) drafts.push_back({.picks = {{&axis, &point}}});
  return drafts;
}

std::vector<std::vector<Draft>> factors(const Block& block) {
  std::vector<std::vector<Draft>> lists;
  for (const Axis& axis : block.axes) lists.push_back(drafts_of(axis));
  for (const Block& inner : block.blocks) lists.push_back(expand(inner));
  return lists;
}

std::vector<Draft> product(const Block& block) {
  std::vector<Draft> result{Draft{}};
  for (const std::vector<Draft>& factor : factors(block)) {
    std::vector<Draft> next;
    next.reserve(result.size() * factor.size());
    for (const Draft& left : result) {
      for (const Draft& right : factor) {
        next.push_back(left);
        append(next.back(), right);
      }
    }
    result = std::move(next);
  }
  return result;
}

std::vector<Draft> zip(const Block& block) {
  const auto lists = factors(block);
  std::vector<Draft> result(lists.empty() ? 0 : lists[0].size());
  for (const auto& list : lists) {
    for (size_t i = 0; i < result.size(); ++i) append(result[i], list[i]);
  }
  return result;
}

std::vector<Draft> listed(const Block& block) {
  std::vector<Draft> result;
  for (const auto& row : block.rows) {
    Draft draft;
    for (const Axis& axis : row) draft.picks.push_back({&axis, &axis.points[0]});
    result.push_back(std::move(draft));
  }
  for (const Block& inner : block.blocks) {
    for (Draft& draft : expand(inner)) result.push_back(std::move(draft));
  }
  return result;
}

}  // namespace

int64_t count_points(const Block& block, Findings& findings) {
  const std::vector<Part> parts = parts_of(block, findings);
  if (block.kind == Block::Kind::product || block.kind == Block::Kind::zip) {
    check_overlap(block, findings);
  }
  if (block.kind == Block::Kind::zip) {
    check_zip(parts, findings);
    return parts.empty() ? 0 : parts[0].size;
  }
  int64_t total = block.kind == Block::Kind::product ? 1 : static_cast<int64_t>(block.rows.size());
  for (const Part& part : parts) {
    total = block.kind == Block::Kind::product ? times(total, part.size) : plus(total, part.size);
  }
  return total;
}

std::vector<Draft> expand(const Block& block) {
  std::vector<Draft> drafts = block.kind == Block::Kind::product ? product(block)
                              : block.kind == Block::Kind::zip   ? zip(block)
                                                                 : listed(block);
  for (Draft& draft : drafts) {
    draft.blocks.insert(draft.blocks.begin(), &block);
    if (block.label)
      draft.picks.insert(draft.picks.begin(), {&*block.label, &block.label->points[0]});
  }
  return drafts;
}

}  // namespace assay::grid
