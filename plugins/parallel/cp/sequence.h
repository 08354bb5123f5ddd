// Sequence: which places of a sequence each rank of context parallelism holds.
#pragma once

#include <cstdint>
#include <vector>

#include "assay/tensor.h"

namespace assay::parallel {

/// Places [begin, end).
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool empty() const { return end <= begin; }
  friend bool operator==(const Range&, const Range&) = default;
};

inline Range common(const Range& a, const Range& b) {
  return {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

/// A sequence cut into equal chunks. `headtail`: 2n chunks, rank r of n holds chunks r and
/// 2n - 1 - r, so that every rank has as much below the causal diagonal (arXiv:2407.21783,
/// section 3.3.2); else n chunks, one each. A rank's tokens stay in the order of
/// the sequence.
class Sequence {
 public:
  /// The number of chunks must divide `length`.
  Sequence(int64_t length, int64_t ranks, bool headtail);

  int64_t length() const { return length_; }
  int64_t ranks() const { return ranks_; }
  int64_t local() const { return length_ / ranks_; }  ///< tokens of one rank

  std::vector<Range> chunks(int64_t rank) const;    ///< ascending
  std::vector<int64_t> places(int64_t rank) const;  ///< of its tokens
  /// Tokens of `rank` that lie before `place`: from a place to an index among the rank's tokens.
  int64_t before(int64_t rank, int64_t place) const;
  Range local_range(int64_t rank, const Range& places) const;

  /// (B, length, W) from the parts (ranks, B, local, W) of all ranks, and back.
  Tensor whole(const Tensor& parts) const;
  void scatter(const Tensor& whole, const Tensor& parts) const;

 private:
  template <class Move>
  void for_each_chunk(const Tensor& whole, const Tensor& parts, Move&& move) const;

  int64_t length_, ranks_;
  bool headtail_;
};

}  // namespace assay::parallel
