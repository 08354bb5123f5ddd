// Region: a box in a global tensor, what two of them share, and how it lies in row-major buffers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace assay::checkpoint {

using Shape = std::vector<int64_t>;

/// begin[d] .. begin[d] + size[d] in each dimension; a scalar has none.
struct Region {
  Shape begin{};
  Shape size{};
  friend bool operator==(const Region&, const Region&) = default;
};

Region whole(const Shape& shape);
int64_t volume(const Region& region);                           ///< elements
bool contains(const Shape& shape, const Region& region);        ///< same rank, inside
std::optional<Region> intersect(const Region&, const Region&);  ///< nothing: no common element

std::string print(const Shape& shape);    ///< "[512, 128]"
std::string print(const Region& region);  ///< "[0:256, 0:128]"

/// Element index of the place `at` (global coordinates) in a row-major buffer of `buffer`.
int64_t index_in(const Region& buffer, const Shape& at);

/// A run of elements that is contiguous in both buffers.
using CopyRun = std::function<void(int64_t from, int64_t to, int64_t count)>;

/// Calls `run` for every row of `part`, which lies in both regions; indices are elements of the
/// row-major buffers of `from` and `to`.
void for_each_run(const Region& part, const Region& from, const Region& to, const CopyRun& run);

}  // namespace assay::checkpoint
