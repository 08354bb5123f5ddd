// Odometers over boxes.
#include "core/checkpoint/region.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "assay/error.h"

namespace assay::checkpoint {

Region whole(const Shape& shape) { return {Shape(shape.size(), 0), shape}; }

int64_t volume(const Region& region) {
  return std::accumulate(region.size.begin(), region.size.end(), int64_t{1}, std::multiplies<>());
}

bool contains(const Shape& shape, const Region& region) {
  if (region.begin.size() != shape.size() || region.size.size() != shape.size()) return false;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (region.begin[d] < 0 || region.size[d] < 0) return false;
    if (region.size[d] > shape[d] - region.begin[d]) return false;
  }
  return true;
}

std::optional<Region> intersect(const Region& a, const Region& b) {
  ASSAY_CHECK(a.begin.size() == b.begin.size(), "regions of tensors of different rank");
  Region common;
  for (size_t d = 0; d < a.begin.size(); ++d) {
    const int64_t begin = std::max(a.begin[d], b.begin[d]);
    const int64_t end = std::min(a.begin[d] + a.size[d], b.begin[d] + b.size[d]);
    if (begin >= end) return std::nullopt;
    common.begin.push_back(begin);
    common.size.push_back(end - begin);
  }
  return common;
}

std::string print(const Shape& shape) {
  std::string text = "[";
  for (size_t d = 0; d < shape.size(); ++d) {
    text += (d == 0 ? "" : ", ") + std::to_string(shape[d]);
  }
  return text + "]";
}

std::string print(const Region& region) {
  std::string text = "[";
  for (size_t d = 0; d < region.size.size(); ++d) {
    text += (d == 0 ? "" : ", ") + std::to_string(region.begin[d]) + ":" +
            std::to_string(region.begin[d] + region.size[d]);
  }
  return text + "]";
}

int64_t index_in(const Region& buffer, const Shape& at) {
  int64_t index = 0;
  for (size_t d = 0; d < at.size(); ++d) {
    index = index * buffer.size[d] + at[d] - buffer.begin[d];
  }
  return index;
}

void for_each_run(const Region& part, const Region& from, const Region& to, const CopyRun& run) {
  if (volume(part) == 0) return;
  const size_t rank = part.size.size();
  const int64_t count = rank == 0 ? 1 : part.size.back();
  Shape at = part.begin;
  for (int64_t rows = volume(part) / count; rows > 0; --rows) {
    run(index_in(from, at), index_in(to, at), count);
    for (size_t d = rank; d-- > 1;) {  // the next row: dimension rank - 2 turns fastest
      if (++at[d - 1] < part.begin[d - 1] + part.size[d - 1]) break;
      at[d - 1] = part.begin[d - 1];
    }
  }
}

}  // namespace assay::checkpoint
