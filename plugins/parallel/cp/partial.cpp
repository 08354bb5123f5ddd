// Cuts operands to a piece, calls, and puts the result in its place.
#include "partial.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

namespace assay::parallel {
namespace {

Tensor cut(const Tensor& x, int64_t dim, int64_t row, const Range& range) {
  const Tensor rows = row < 0 ? x : x.narrow(0, row, 1);
  return rows.narrow(dim, range.begin, range.size());
}

Tensor queries(const Tensor& x, const Piece& piece) { return cut(x, 1, piece.row, piece.queries); }
Tensor keys(const Tensor& x, const Piece& piece) { return cut(x, 1, piece.row, piece.keys); }

AttentionPart queries(const AttentionPart& whole, const Piece& piece) {
  return {queries(whole.out, piece), cut(whole.lse, 2, piece.row, piece.queries)};
}

AttentionSpec spec_of(const Piece& piece, const AttentionSpec& spec) {
  return {.kind = spec.kind,
          .head_dim = spec.head_dim,
          .scale = spec.scale,
          .causal = piece.causal,
          .documents = {}};
}

AttentionPart attend_piece(Ops& ops, const Operands& x, const Piece& piece,
                           const AttentionSpec& spec) {
  return ops.attention_part(queries(x.q, piece), keys(x.k, piece), keys(x.v, piece),
                            spec_of(piece, spec));
}

bool covers(const Piece& piece, const Tensor& q) {
  return piece.row < 0 && piece.queries.size() == q.size(1);
}

}  // namespace

AttentionPart attend(Ops& ops, const Operands& x, const Pieces& pieces, const AttentionSpec& spec) {
  if (covers(pieces.front(), x.q)) return attend_piece(ops, x, pieces.front(), spec);
  const auto statistics = x.q.options().dtype(statistics_dtype(x.q.scalar_type()));
  const int64_t heads = x.q.size(2) / spec.head_dim;
  const AttentionPart whole{at::empty_like(x.q),
                            at::empty({x.q.size(0), heads, x.q.size(1)}, statistics)};
  for (const Piece& piece : pieces) {
    const AttentionPart part = attend_piece(ops, x, piece, spec);
    const AttentionPart place = queries(whole, piece);
    place.out.copy_(part.out);
    place.lse.copy_(part.lse);
  }
  return whole;
}

void attend_more(Ops& ops, const Operands& x, const Pieces& pieces, const AttentionSpec& spec,
                 const AttentionPart& into) {
  for (const Piece& piece : pieces) {
    merge_attention(queries(into, piece), attend_piece(ops, x, piece, spec));
  }
}

void add_gradients(Ops& ops, const Tensor& dout, const Operands& x, const Pieces& pieces,
                   const AttentionPart& whole, const AttentionSpec& spec,
                   const AttentionGradients& sums) {
  for (const Piece& piece : pieces) {
    const AttentionGradients part =
        ops.attention_part_backward(queries(dout, piece), queries(x.q, piece), keys(x.k, piece),
                                    keys(x.v, piece), queries(whole, piece), spec_of(piece, spec));
    queries(sums.dq, piece).add_(part.dq);
    keys(sums.dk, piece).add_(part.dk);
    keys(sums.dv, piece).add_(part.dv);
  }
}

}  // namespace assay::parallel
