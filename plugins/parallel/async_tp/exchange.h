// Exchanges among all ranks of a group in pieces of the sequence, one message each.
#pragma once

#include <functional>
#include <vector>

#include "assay/communicator.h"

namespace assay::parallel {

/// Piece i of rank r's part of a sequence: rows begin .. begin + size of the whole dimension.
struct Piece {
  int rank = 0;
  int64_t index = 0, begin = 0, size = 0;
};

/// `part` (B, s, D), this rank's part of the sequence; `use` is called once for every piece of
/// every rank, own ones first, with the piece (B, s / pieces, D) as it arrives.
void gather_in_pieces(const Tensor& part, int64_t pieces, Communicator& group,
                      const std::function<void(const Piece&, const Tensor&)>& use);

/// `make` gives this rank's share (B, s / pieces, D) of a piece of any rank's part; the result
/// (B, s, D) is the sum of all ranks' shares of this rank's part, added in rank order in the
/// statistics dtype and rounded once.
Tensor scatter_in_pieces(int64_t part_size, int64_t pieces, Communicator& group,
                         const std::function<Tensor(const Piece&)>& make);

}  // namespace assay::parallel
