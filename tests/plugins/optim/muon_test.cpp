// Newton-Schulz against the polynomial that it applies to singular values, and Muon's update.
#include "muon.h"

#include <ATen/ops/diag.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linspace.h>
#include <gtest/gtest.h>

#include "adamw.h"
#include "assay/error.h"
#include "newton_schulz.h"
#include "optimizer_checks.h"
#include "tests/plugins/support/model_harness.h"

namespace assay::optim {
namespace {

/// What `steps` steps make of one singular value, after the scaling by the norm.
double mapped(double s, int64_t steps = 5) {
  const Quintic q;
  for (int64_t i = 0; i < steps; ++i) s = q.a * s + q.b * std::pow(s, 3) + q.c * std::pow(s, 5);
  return s;
}

/// A matrix with known singular vectors and values: u diag(s) v^T.
struct Known {
  at::Tensor u, s, v;
  at::Tensor matrix() const { return u.mm(at::diag(s)).mm(v.t()); }
};

Known known(int64_t rows, int64_t cols, uint64_t seed) {
  test::Random random(seed);
  const int64_t n = std::min(rows, cols);
  const auto basis = [&](int64_t size) {
    return std::get<0>(at::linalg_qr(random.normal({size, n}, at::kDouble)));
  };
  const at::Tensor s = at::linspace(1.0, 0.2, n, at::kDouble);
  return {basis(rows), s, basis(cols)};
}

/// Largest deviations of u^T x v from diag(mapped(s)): off and on the diagonal.
std::pair<double, double> deviations(const Known& k, const at::Tensor& x) {
  const at::Tensor core = k.u.t().mm(x).mm(k.v), on = core.diagonal();
  const double off = core.sub(at::diag(on)).abs().max().item<double>();
  const double norm = k.s.norm().item<double>();
  double worst = 0;
  for (int64_t i = 0; i < on.size(0); ++i) {
    const double expected = mapped(k.s[i].item<double>() / norm);
    worst = std::max(worst, std::abs(on[i].item<double>() - expected));
  }
  return {off, worst};
}

}  // namespace

TEST(NewtonSchulz, MapsSingularValuesAndKeepsVectors) {
  for (const auto& [rows, cols] : {std::pair{6, 10}, {10, 6}, {7, 7}}) {
    const Known k = known(rows, cols, 3);
    const auto [off, on] = deviations(k, newton_schulz(k.matrix(), 5, at::kDouble));
    EXPECT_LT(off, 1e-12) << rows << "x" << cols;
    EXPECT_LT(on, 1e-12) << rows << "x" << cols;
  }
}

TEST(NewtonSchulz, Bf16StaysNearTheMap) {
  const Known k = known(24, 40, 5);
  const auto [off, on] = deviations(k, newton_schulz(k.matrix(), 5, at::kBFloat16));
  EXPECT_LT(off, 3e-2);
  EXPECT_LT(on, 3e-2);
  EXPECT_GT(on, 1e-5);  // it was bf16
}

TEST(NewtonSchulz, MapOfTheRecipe) {
  double low = 2, high = 0;
  for (int i = 0; i <= 99'000; ++i) {
    const double y = mapped(0.01 + i * 1e-5);
    low = std::min(low, y);
    high = std::max(high, y);
  }
  EXPECT_NEAR(low, 0.6818, 5e-5);
  EXPECT_NEAR(high, 1.1344, 5e-5);
  EXPECT_NEAR(mapped(0.001), 0.4705, 5e-5);
  EXPECT_NEAR(mapped(1e-9) / 1e-9, 484.9, 0.05);
}

TEST(NewtonSchulz, IsFreeOfScale) {
  test::Random random(9);
  const at::Tensor g = random.normal({5, 9}, at::kDouble);
  const at::Tensor x = newton_schulz(g, 5, at::kDouble);
  EXPECT_LT(newton_schulz(g.mul(1e-3), 5, at::kDouble).sub(x).abs().max().item<double>(), 1e-12);
  EXPECT_TRUE(newton_schulz(at::zeros({4, 4}), 5, at::kBFloat16).equal(at::zeros({4, 4})));
}

TEST(Muon, FollowsItsEquations) {
  test::Random random(1);
  for (const char* scale : {"original", "match_rms_adamw", "spectral"}) {
    MuonOptions o;
    o.ns_dtype = "fp64";
    o.scale = scale;
    Muon muon(o);
    const at::Tensor weight = random.normal({12, 4}, at::kDouble);
    at::Tensor w = weight.clone(), m = at::zeros_like(w);
    ParameterShard p = make_shard(muon, info_of("w", weight), weight);
    const double rho = o.scale == "match_rms_adamw" ? 0.2 * std::sqrt(12) : std::sqrt(3);
    for (int64_t step = 1; step <= 4; ++step) {
      p.grad = random.normal({12, 4}, at::kDouble);
      muon.step({&p, 1}, {.step = step, .lr = 0.02});
      m = m.mul(0.95).add(p.grad, 0.05);
      const at::Tensor x = newton_schulz(m.mul(0.95).add(p.grad, 0.05), 5, at::kDouble);
      w = w.mul(1 - 0.02 * 0.1).sub(x, 0.02 * rho);
      ASSERT_LT(weight.sub(w).abs().max().item<double>(), 1e-13) << scale << " step " << step;
    }
  }
}

TEST(Muon, TheRestIsAdamW) {
  MuonOptions options;
  options.rest = {"*down*"};
  Muon muon(options);
  AdamWOptions adamw_options;
  adamw_options.implementation = "plain";
  AdamW adamw(adamw_options);
  for (const ParameterRole role : {ParameterRole::embedding, ParameterRole::matrix}) {
    const at::Tensor a = at::full({4, 6}, 0.5), b = a.clone();
    const ParameterInfo info = info_of("mlp.down_proj", a, role);
    ParameterShard mine = make_shard(muon, info, a), reference = make_shard(adamw, info, b);
    mine.grad = reference.grad = at::full({4, 6}, 0.1);
    muon.step({&mine, 1}, {.step = 1, .lr = 0.01});
    adamw.step({&reference, 1}, {.step = 1, .lr = 0.01});
    EXPECT_TRUE(a.equal(b));
  }
}

TEST(Muon, RefusesWhatIsNoMatrixOrNotWhole) {
  const Muon muon({});
  const auto refusal = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  ParameterInfo cube = info_of("experts", at::zeros({2, 4, 4}));
  EXPECT_NE(refusal([&] { muon.check({&cube, 1}); }).find("[R-MUONDIM]"), std::string::npos);
  cube.role = ParameterRole::router;
  EXPECT_EQ(refusal([&] { muon.check({&cube, 1}); }), "accepted");
  ParameterInfo half = info_of("wq", at::zeros({4, 4}));
  half.shard_shape = {2, 4};
  EXPECT_NE(refusal([&] { muon.state_spec(half); }).find("[R-MUONSHARD]"), std::string::npos);
}

TEST(Muon, RunsOnMeta) {
  Muon muon({});
  expect_meta(muon, {8, 4});
}

}  // namespace assay::optim
