// The formulas of context parallelism in fp64 against softmax attention written out: parts merged
// by lse, and gradients of parts from the lse of the whole, below 1e-14.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>
#include <memory>

#include "partial.h"

namespace assay::parallel {
namespace {

constexpr double kBound = 1e-14;

struct Shape5 {
  int64_t length, ranks, heads, kv_heads, head_dim;
  bool headtail;
};

void PrintTo(const Shape5& s, std::ostream* out) {
  *out << s.length << " tokens over " << s.ranks << ", " << s.heads << "/" << s.kv_heads
       << " heads of " << s.head_dim << (s.headtail ? ", headtail" : "");
}

const Documents kDocuments{{{0, 5, 6, 17}, {0}, {0, 11}}};
constexpr int64_t kRows = 3;

Tensor draw(const Shape& shape, uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  return at::randn(shape, generator, at::TensorOptions(at::kDouble));
}

Tensor heads_of(const Tensor& x, int64_t head_dim) {
  return x.view({x.size(0), x.size(1), -1, head_dim}).transpose(1, 2);
}

/// (B, 1, T, T): true where a query must not look.
Tensor hidden(int64_t length, const Documents& documents) {
  const Tensor place = at::arange(length);
  Tensors rows;
  for (const auto& starts : documents.starts) {
    const Tensor document = place.unsqueeze(1).ge(at::tensor(starts)).sum(1);
    rows.push_back(document.unsqueeze(1)
                       .ne(document.unsqueeze(0))
                       .logical_or(place.unsqueeze(0).gt(place.unsqueeze(1))));
  }
  return at::stack(rows).unsqueeze(1);
}

/// softmax(scale q k^T + mask) v in ATen calls; out (B, T, H * dh), lse (B, H, T).
AttentionPart plain(const Operands& x, int64_t head_dim, double scale, const Tensor& mask) {
  const Tensor q = heads_of(x.q, head_dim);
  const int64_t group = x.q.size(2) / x.k.size(2);
  const Tensor k = heads_of(x.k, head_dim).repeat_interleave(group, 1);
  const Tensor v = heads_of(x.v, head_dim).repeat_interleave(group, 1);
  const Tensor scores = at::matmul(q, k.transpose(2, 3))
                            .mul(scale)
                            .masked_fill(mask, -std::numeric_limits<double>::infinity());
  const Tensor lse = scores.logsumexp({-1});
  const Tensor out = at::matmul(scores.sub(lse.unsqueeze(-1)).exp(), v);
  return {out.transpose(1, 2).flatten(2), lse};
}

double gap(const Tensor& a, const Tensor& b) { return a.sub(b).abs().max().item<double>(); }

class Merging : public testing::TestWithParam<Shape5> {
 protected:
  const Shape5 s = GetParam();
  const Sequence sequence{s.length, s.ranks, s.headtail};
  const std::unique_ptr<Ops> ops = make_eager_ops();
  const AttentionSpec spec{.head_dim = s.head_dim,
                           .scale = 1 / std::sqrt(static_cast<double>(s.head_dim))};
  Operands whole{draw({kRows, s.length, s.heads* s.head_dim}, 1).requires_grad_(),
                 draw({kRows, s.length, s.kv_heads* s.head_dim}, 2).requires_grad_(),
                 draw({kRows, s.length, s.kv_heads* s.head_dim}, 3).requires_grad_()};
  const Tensor dout = draw({kRows, s.length, s.heads* s.head_dim}, 4);

  Tensor part(const Tensor& x, int64_t rank, int64_t dim = 1) const {
    return x.detach().index_select(dim, at::tensor(sequence.places(rank)));
  }
  Operands held(int64_t rank, int64_t owner) const {
    return {part(whole.q, rank), part(whole.k, owner), part(whole.v, owner)};
  }

  /// What a ring gives this rank: its own block first, then the ones before.
  AttentionPart ring(int64_t rank, const Documents& documents) {
    AttentionPart sum =
        attend(*ops, held(rank, rank), pieces_of_block(sequence, rank, rank, documents), spec);
    for (int64_t step = 1; step < s.ranks; ++step) {
      const int64_t owner = (rank - step + s.ranks) % s.ranks;
      attend_more(*ops, held(rank, owner), pieces_of_block(sequence, rank, owner, documents), spec,
                  sum);
    }
    return sum;
  }

  void expect_equal(const Documents& documents) {
    const AttentionPart reference =
        plain(whole, s.head_dim, spec.scale, hidden(s.length, documents));
    torch::autograd::backward({reference.out}, {dout});
    const at::NoGradGuard no_grad;
    const Tensor dk = at::zeros_like(whole.k), dv = at::zeros_like(whole.v);
    for (int64_t rank = 0; rank < s.ranks; ++rank) {
      const AttentionPart sum = ring(rank, documents);
      EXPECT_LT(gap(sum.out, part(reference.out, rank)), kBound);
      EXPECT_LT(gap(sum.lse, part(reference.lse, rank, 2)), kBound);
      const Operands row{part(whole.q, rank), whole.k.detach(), whole.v.detach()};
      const Pieces pieces = pieces_of_row(sequence, rank, documents);
      const AttentionPart gathered = attend(*ops, row, pieces, spec);
      EXPECT_LT(gap(gathered.out, part(reference.out, rank)), kBound);
      EXPECT_LT(gap(gathered.lse, part(reference.lse, rank, 2)), kBound);
      expect_query_gradients(rank, documents, sum, dk, dv);
    }
    EXPECT_LT(gap(dk, whole.k.grad()), kBound);
    EXPECT_LT(gap(dv, whole.v.grad()), kBound);
  }

  /// Checks dq both ways and adds the ring's shares of dk and dv.
  void expect_query_gradients(int64_t rank, const Documents& documents, const AttentionPart& sum,
                              const Tensor& dk, const Tensor& dv) {
    const Tensor mine = part(dout, rank), dq = at::zeros_like(part(whole.q, rank));
    for (int64_t owner = 0; owner < s.ranks; ++owner) {
      const Operands x = held(rank, owner);
      const AttentionGradients sums{dq, at::zeros_like(x.k), at::zeros_like(x.v)};
      add_gradients(*ops, mine, x, pieces_of_block(sequence, rank, owner, documents), sum, spec,
                    sums);
      const Tensor places = at::tensor(sequence.places(owner));
      dk.index_add_(1, places, sums.dk);
      dv.index_add_(1, places, sums.dv);
    }
    EXPECT_LT(gap(dq, part(whole.q.grad(), rank)), kBound);
    const Operands row{part(whole.q, rank), whole.k.detach(), whole.v.detach()};
    const AttentionGradients all{at::zeros_like(dq), at::zeros_like(row.k), at::zeros_like(row.v)};
    add_gradients(*ops, mine, row, pieces_of_row(sequence, rank, documents), sum, spec, all);
    EXPECT_LT(gap(all.dq, dq), kBound);
  }
};

TEST_P(Merging, GivesTheSoftmaxOfTheWholeAndItsGradients) { expect_equal({{{0}, {0}, {0}}}); }
TEST_P(Merging, GivesTheSoftmaxOfEachDocument) { expect_equal(kDocuments); }

INSTANTIATE_TEST_SUITE_P(Shapes, Merging,
                         testing::Values(Shape5{24, 2, 4, 2, 8, true},
                                         Shape5{24, 2, 4, 4, 6, false},
                                         Shape5{24, 3, 6, 2, 4, true},
                                         Shape5{24, 4, 8, 1, 8, false},
                                         Shape5{48, 4, 4, 2, 16, true}));

TEST(Merge, TakesAnEmptyStartAndAnyOrder) {
  const AttentionPart a{draw({1, 3, 4}, 1), draw({1, 2, 3}, 2)};
  const AttentionPart b{draw({1, 3, 4}, 3), draw({1, 2, 3}, 4)};
  const auto merged = [](const AttentionPart& first, const AttentionPart& second) {
    AttentionPart sum{at::zeros_like(first.out),
                      at::zeros_like(first.lse).fill_(-std::numeric_limits<double>::infinity())};
    merge_attention(sum, first);
    merge_attention(sum, second);
    return sum;
  };
  const AttentionPart ab = merged(a, b), ba = merged(b, a);
  EXPECT_LT(gap(ab.out, ba.out), 1e-15);
  EXPECT_LT(gap(ab.lse, ba.lse), 1e-15);
  const Tensor weights = a.lse.exp().add(b.lse.exp());
  EXPECT_LT(gap(ab.lse, weights.log()), 1e-15);
}

}  // namespace
}  // namespace assay::parallel
