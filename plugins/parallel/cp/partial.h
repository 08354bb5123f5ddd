// Attention over pieces: the kernels of the layers below, one call per piece.
#pragma once

#include "assay/ops.h"
#include "pieces.h"

namespace assay::parallel {

/// q (B, S, H * dh), k and v (B, Sk, Hkv * dh), as held while the pieces count.
struct Operands {
  Tensor q{}, k{}, v{};
};

/// Every query is in exactly one piece. out in the dtype of q.
AttentionPart attend(Ops& ops, const Operands& x, const Pieces& pieces, const AttentionSpec& spec);

/// Merges what the queries see in these keys into `into` (statistics dtype).
void attend_more(Ops& ops, const Operands& x, const Pieces& pieces, const AttentionSpec& spec,
                 const AttentionPart& into);

/// Adds to `sums` the share of these keys; `whole` is out and lse over all keys.
void add_gradients(Ops& ops, const Tensor& dout, const Operands& x, const Pieces& pieces,
                   const AttentionPart& whole, const AttentionSpec& spec,
                   const AttentionGradients& sums);

}  // namespace assay::parallel
