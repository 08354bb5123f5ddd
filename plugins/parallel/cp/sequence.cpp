// Chunks, places and their arithmetic; no permutation is stored.
#include "sequence.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <string>

#include "assay/error.h"

namespace assay::parallel {

Sequence::Sequence(int64_t length, int64_t ranks, bool headtail)
    : length_(length), ranks_(ranks), headtail_(headtail) {
  const int64_t chunks = headtail ? 2 * ranks : ranks;
  if (length % chunks == 0) return;
  throw Error("[R-CPSEQ] a sequence of " + std::to_string(length) + " tokens cannot be cut into " +
                  std::to_string(chunks) + " equal chunks",
              "set model.seq_len to a multiple of " + std::to_string(chunks));
}

std::vector<Range> Sequence::chunks(int64_t rank) const {
  if (!headtail_) return {{rank * local(), (rank + 1) * local()}};
  const int64_t size = local() / 2, tail = 2 * ranks_ - 1 - rank;
  return {{rank * size, (rank + 1) * size}, {tail * size, (tail + 1) * size}};
}

std::vector<int64_t> Sequence::places(int64_t rank) const {
  std::vector<int64_t> result;
  for (const Range& chunk : chunks(rank)) {
    for (int64_t place = chunk.begin; place < chunk.end; ++place) result.push_back(place);
  }
  return result;
}

int64_t Sequence::before(int64_t rank, int64_t place) const {
  int64_t count = 0;
  for (const Range& chunk : chunks(rank)) {
    count += std::clamp<int64_t>(place - chunk.begin, 0, chunk.size());
  }
  return count;
}

Range Sequence::local_range(int64_t rank, const Range& places) const {
  return {before(rank, places.begin), before(rank, places.end)};
}

template <class Move>
void Sequence::for_each_chunk(const Tensor& whole, const Tensor& parts, Move&& move) const {
  for (int64_t rank = 0; rank < ranks_; ++rank) {
    const Tensor part = parts.select(0, rank);
    for (const Range& chunk : chunks(rank)) {
      move(whole.narrow(1, chunk.begin, chunk.size()),
           part.narrow(1, before(rank, chunk.begin), chunk.size()));
    }
  }
}

Tensor Sequence::whole(const Tensor& parts) const {
  const Tensor result = at::empty({parts.size(1), length_, parts.size(3)}, parts.options());
  for_each_chunk(result, parts, [](const Tensor& to, const Tensor& from) { to.copy_(from); });
  return result;
}

void Sequence::scatter(const Tensor& whole, const Tensor& parts) const {
  for_each_chunk(whole, parts, [](const Tensor& from, const Tensor& to) { to.copy_(from); });
}

}  // namespace assay::parallel
