// Pieces: which queries meet which keys, as rectangles and causal squares that a kernel can do.
#pragma once

#include <vector>

#include "assay/ops.h"
#include "sequence.h"

namespace assay::parallel {

/// Queries and keys by their index among those at hand. Causal: the last query sees the last key.
struct Piece {
  int64_t row = -1;  ///< of the batch; -1: all rows alike
  Range queries{}, keys{};
  bool causal = false;

  /// Twice the area of the score matrix below the diagonal: what a causal kernel works through.
  int64_t work() const {
    const int64_t all = 2 * queries.size() * keys.size();
    return causal ? all - queries.size() * queries.size() : all;
  }
  friend bool operator==(const Piece&, const Piece&) = default;
};

using Pieces = std::vector<Piece>;

/// The tokens of `rank` against those of rank `held`, both indexed as the rank holds them. A query
/// is in one piece at most.
Pieces pieces_of_block(const Sequence& sequence, int64_t rank, int64_t held,
                       const Documents& documents);

/// The tokens of `rank` against the whole sequence in its own order. A query is in exactly one
/// piece.
Pieces pieces_of_row(const Sequence& sequence, int64_t rank, const Documents& documents);

/// Work of all pieces for a batch of `rows` sequences.
int64_t work_of(const Pieces& pieces, int64_t rows);

}  // namespace assay::parallel
