// Linear layers, attention and cross entropy of compile/fused against eager; products on tensors.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>

#include <cmath>

#include "ops_pair.h"
#include "product.h"

namespace assay::fused {
namespace {

const auto kLinear = [](OpStack&
                            b) {  // three weights on one input; nothing is a multiple of a tile
  const std::vector<Weight> w{b.weight({50, 70}, 2), b.weight({17, 70}, 3), b.weight({1, 70}, 4)};
  return b.ops().linear(b.input({3, 41, 70}, 1), w);
};

TEST(FusedLinear, EqualsEager) { expect_equal_to_eager(kLinear); }
TEST(FusedLinear, HasTheSameBitsForAnyThreadCount) { expect_bits_for_any_thread_count(kLinear); }

TEST(FusedLinear, GivesDeepSumsTheirPasses) {  // 1000 = three passes over k
  expect_equal_to_eager([](OpStack& b) {
    const std::vector<Weight> w{b.weight({30, 1000}, 2)};
    return b.ops().linear(b.input({1, 100, 1000}, 1), w);
  });
}

struct Layout {
  bool a_transposed, b_transposed;
};

TEST(FusedProduct, TakesEveryLayout) {
  if (!own_products(at::kFloat)) GTEST_SKIP() << "own products serve AVX2 only";
  OpStack b(true, at::kFloat);
  for (const auto [ta, tb] : {Layout{false, false}, {false, true}, {true, false}, {true, true}}) {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      const Tensor x = (ta ? b.draw({77, 40}, 1).t() : b.draw({40, 77}, 1)).to(dtype);
      const Tensor y = (tb ? b.draw({19, 77}, 2).t() : b.draw({77, 19}, 2)).to(dtype);
      const Tensor c = at::full({40, 19}, 3.0, at::kFloat);
      const Factors term{x, y};
      sum_of_products({&term, 1}, c, /*accumulate=*/true);
      const Tensor expected = at::mm(x.to(at::kDouble), y.to(at::kDouble)).add(3.0);
      EXPECT_LE(distance(c, expected), 1e-6) << ta << tb << toString(dtype);
    }
  }
}

TEST(FusedProduct, BitsOfARowDependOnNothingElse) {
  if (!own_products(at::kFloat)) GTEST_SKIP() << "own products serve AVX2 only";
  OpStack b(true, at::kFloat);
  const Tensor x = b.draw({151, 96}, 1), w = b.draw({40, 96}, 2);
  const Tensor all = call_linear(x, {w})[0];
  for (const int64_t rows : {1, 2, 5, 6, 7, 73}) {
    const Tensor part = call_linear(x.narrow(0, 151 - rows, rows), {w})[0];
    EXPECT_TRUE(part.equal(all.narrow(0, 151 - rows, rows))) << rows << " rows";
  }
}

struct AttentionCase {
  int64_t sequence, heads, kv_heads, head_dim;
  bool causal;
  int64_t keys_before = 0;  ///< of the first query's own
};

class FusedAttention : public testing::TestWithParam<AttentionCase> {};

std::function<Tensors(OpStack&)> attention_of(const AttentionCase& c) {
  return [c](OpStack& b) {
    const Tensor q = b.input({2, c.sequence, c.heads * c.head_dim}, 1);
    const int64_t keys = c.keys_before + c.sequence;
    const Tensor k = b.input({2, keys, c.kv_heads * c.head_dim}, 2);
    const Tensor v = b.input({2, keys, c.kv_heads * c.head_dim}, 3);
    const double scale = 1 / std::sqrt(static_cast<double>(c.head_dim));
    const auto part = b.ops().attention_part(
        q, k, v, {.head_dim = c.head_dim, .scale = scale, .causal = c.causal});
    return Tensors{part.out, part.lse};
  };
}

TEST_P(FusedAttention, EqualsEager) { expect_equal_to_eager(attention_of(GetParam()), 2); }
TEST_P(FusedAttention, HasTheSameBitsForAnyThreadCount) {
  expect_bits_for_any_thread_count(attention_of(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, FusedAttention,
    testing::Values(AttentionCase{1, 1, 1, 8, true}, AttentionCase{37, 2, 1, 20, true},
                    AttentionCase{37, 2, 2, 20, false}, AttentionCase{300, 4, 2, 32, true},
                    AttentionCase{260, 2, 1, 64, false}, AttentionCase{40, 2, 1, 16, true, 3},
                    AttentionCase{100, 4, 2, 32, true, 300}, AttentionCase{1, 2, 1, 8, true, 130},
                    AttentionCase{70, 2, 2, 20, false, 200}));

/// The first keys alone, then the others merged in: the same output, and each part's gradients add
/// up to those of one call.
TEST(FusedAttentionParts, MergeAndAddUp) {
  const AttentionCase c{96, 4, 2, 32, true, 100};
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    OpStack b(/*fused=*/true, dtype);
    const at::NoGradGuard no_grad;
    const Tensor q = b.draw({2, c.sequence, 128}, 1), dout = b.draw({2, c.sequence, 128}, 4);
    const Tensor k = b.draw({2, 196, 64}, 2), v = b.draw({2, 196, 64}, 3);
    AttentionSpec spec{.head_dim = 32, .scale = 0.25};
    const AttentionPart one = b.ops().attention_part(q, k, v, spec);
    const AttentionGradients all = b.ops().attention_part_backward(dout, q, k, v, one, spec);
    const auto keys = [&](const Tensor& x, int64_t begin, int64_t n) {
      return x.narrow(1, begin, n).contiguous();
    };
    const Tensor k1 = keys(k, 0, 100), v1 = keys(v, 0, 100), k2 = keys(k, 100, 96),
                 v2 = keys(v, 100, 96);
    AttentionPart sum = b.ops().attention_part(q, k2, v2, spec);
    const AttentionGradients own = b.ops().attention_part_backward(dout, q, k2, v2, one, spec);
    spec.causal = false;
    sum.out = sum.out.to(at::kFloat);
    merge_attention(sum, b.ops().attention_part(q, k1, v1, spec));
    const AttentionGradients before = b.ops().attention_part_backward(dout, q, k1, v1, one, spec);
    const double bound = dtype == at::kFloat ? 2e-6 : 2e-2;
    const auto gap = [](const Tensor& x, const Tensor& y) {
      return x.sub(y).abs().max().item<double>() / y.abs().max().item<double>();
    };
    EXPECT_LE(gap(sum.out, one.out.to(at::kFloat)), bound);
    EXPECT_LE(gap(sum.lse, one.lse), bound);
    EXPECT_LE(gap(own.dq.add(before.dq), all.dq), bound);
    EXPECT_LE(gap(at::cat({before.dk, own.dk}, 1), all.dk), bound);
    EXPECT_LE(gap(at::cat({before.dv, own.dv}, 1), all.dv), bound);
  }
}

const auto kLoss = [](OpStack& b) {  // V = 5000: chunks of 64 tokens; labels -100 are ignored
  const Tensor labels = at::arange(150, at::kLong).mul(331).remainder(5000).view({2, 75});
  labels.select(1, 3).fill_(-100);
  const Tensor hidden = b.input({2, 75, 24}, 1);
  const auto stats = b.ops().ce_stats(hidden, b.weight({5000, 24}, 2), labels);
  return Tensors{stats.max, stats.sum_exp, stats.target};
};

TEST(FusedLoss, EqualsEager) {
  ASSERT_LT(chunk_tokens(5000), 150);
  expect_equal_to_eager(kLoss, 4);  // sum_exp of exact logits: relative error of exp is |logit| eps
}
TEST(FusedLoss, HasTheSameBitsForAnyThreadCount) { expect_bits_for_any_thread_count(kLoss); }

TEST(FusedOperators, GiveShapesOnMeta) {
  register_operators();
  const auto meta = at::TensorOptions(at::kMeta).dtype(at::kBFloat16);
  const Tensor x = at::empty({2, 5, 32}, meta), w = at::empty({48, 32}, meta);
  const Tensor scale = at::empty({32}, meta.dtype(at::kFloat));
  const auto [y, rstd] = call_norm(x, scale, 1e-5);
  EXPECT_EQ(rstd.sizes(), (Shape{2, 5, 1}));
  EXPECT_EQ(rstd.scalar_type(), at::kFloat);
  EXPECT_EQ(std::get<1>(call_norm_backward(y, x, scale, rstd)).sizes(), (Shape{32}));
  EXPECT_EQ(call_linear(x, {w, w})[1].sizes(), (Shape{2, 5, 48}));
  const Tensor dy = at::empty({2, 5, 48}, meta);
  EXPECT_EQ(call_linear_dx({dy, dy}, {w, w}).sizes(), x.sizes());
  EXPECT_EQ(call_linear_dw(dy, x).sizes(), w.sizes());
  const auto [out, lse] = call_attention(x, x, x, 8, 0.3, true);
  EXPECT_EQ(out.sizes(), x.sizes());
  EXPECT_EQ(lse.sizes(), (Shape{2, 4, 5}));
  EXPECT_EQ(std::get<1>(call_attention_backward(out, x, x, x, out, lse, 8, 0.3, true)).sizes(),
            x.sizes());
  const Tensor flat = x.view({10, 32}), labels = at::empty({10}, meta.dtype(at::kLong));
  const auto [max, sum, target] = call_ce_stats(flat, w, labels);
  EXPECT_EQ(sum.sizes(), (Shape{10}));
  EXPECT_EQ(std::get<1>(call_ce_backward(flat, w, labels, max, sum, target)).sizes(), w.sizes());
  EXPECT_EQ(std::get<0>(call_swiglu_backward(x, x, x)).sizes(), x.sizes());
}

}  // namespace
}  // namespace assay::fused
