// Points sort by a key that spells the order of computation.
#include "core/evidence/divergence.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

namespace assay::evidence {
namespace {

constexpr int64_t kHead = std::numeric_limits<int64_t>::max();

struct Place {
  int stage = 0;       ///< forward, backward, gradient, weights
  int64_t block = 0;   ///< negative order for backward
  std::string rest{};  ///< operator number and name before the block's own output
  auto operator<=>(const Place&) const = default;
};

// "embedding" first, "layers.12" by number, "head" last.
int64_t block_number(const std::string& block) {
  const size_t dot = block.rfind('.');
  if (dot == std::string::npos) return block == "embedding" ? -1 : kHead;
  return std::strtoll(block.c_str() + dot + 1, nullptr, 10);
}

Place place_of(const std::string& point) {
  std::istringstream words(point);
  std::string kind, name, rest;
  words >> kind >> name;
  std::getline(words, rest);
  if (kind == "op") return {0, block_number(name), rest};
  if (kind == "forward") return {0, block_number(name), "~"};
  if (kind == "backward") return {1, -block_number(name), ""};
  return {kind == "gradient" ? 2 : 3, 0, name};
}

using Key = std::tuple<int64_t, Place, std::string, int64_t>;  // step, place, point, rank
using Digests = std::map<Key, TraceDigest>;

Digests sorted(const std::vector<TraceDigest>& digests, bool by_rank) {
  Digests result;
  for (const TraceDigest& d : digests) {
    if (!by_rank && d.point.starts_with("op ")) continue;
    const int64_t rank = by_rank ? d.rank : -1;
    auto [found, fresh] = result.try_emplace({d.step, place_of(d.point), d.point, rank},
                                             TraceDigest{d.step, d.point, rank});
    found->second.sum += d.sum;
    found->second.squares += d.squares;
  }
  return result;
}

double gap_between(const TraceDigest& a, const TraceDigest& b) {
  const bool a_finite = std::isfinite(a.sum) && std::isfinite(a.squares);
  const bool b_finite = std::isfinite(b.sum) && std::isfinite(b.squares);
  if (!a_finite || !b_finite) {
    return a_finite == b_finite ? 0 : std::numeric_limits<double>::infinity();
  }
  const double squares = std::max(a.squares, b.squares);
  if (squares == 0) return 0;
  return std::max(std::abs(a.sum - b.sum) / std::sqrt(squares),
                  std::abs(a.squares - b.squares) / squares);
}

std::vector<std::string> one_sided_points(const Digests& a, const Digests& b) {
  std::set<std::string> points;
  for (const auto& [left, right] : std::array{std::pair(&a, &b), std::pair(&b, &a)}) {
    for (const auto& [key, digest] : *left) {
      if (!right->contains(key)) points.insert(digest.point);
    }
  }
  return {points.begin(), points.end()};
}

}  // namespace

TraceComparison compare_traces(const std::vector<TraceDigest>& a, const std::vector<TraceDigest>& b,
                               bool same_layout, double tolerance) {
  const Digests left = sorted(a, same_layout), right = sorted(b, same_layout);
  TraceComparison result;
  result.one_sided = one_sided_points(left, right);
  for (const auto& [key, digest] : left) {
    const auto other = right.find(key);
    if (other == right.end()) continue;
    ++result.compared;
    const double gap = gap_between(digest, other->second);
    if (gap > tolerance) {
      result.first = Divergence{digest.step, digest.point, digest.rank, digest, other->second, gap};
      return result;
    }
    result.largest_gap = std::max(result.largest_gap, gap);
  }
  return result;
}

}  // namespace assay::evidence
