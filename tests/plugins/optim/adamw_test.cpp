// AdamW against its equations in double precision, and its groups.
#include "adamw.h"

#include <gtest/gtest.h>

#include "assay/error.h"
#include "fused_adamw.h"
#include "optimizer_checks.h"
#include "tests/plugins/support/model_harness.h"

namespace assay::optim {
namespace {

ScalarRule adamw_rule(const AdamWOptions& o, double decay) {
  return [o, decay, m = 0.0, v = 0.0](int64_t step, double lr, double g, double w) mutable {
    const auto t = static_cast<double>(step);
    w *= 1 - lr * decay;
    m = o.beta1 * m + (1 - o.beta1) * g;
    v = o.beta2 * v + (1 - o.beta2) * g * g;
    return w - lr * (m / (1 - std::pow(o.beta1, t))) /
                   (std::sqrt(v / (1 - std::pow(o.beta2, t))) + o.eps);
  };
}

AdamWOptions plain() {
  AdamWOptions options;
  options.implementation = "plain";
  return options;
}

AdamWOptions fused() {
  static const bool once = [] {
    register_fused_adamw();
    return true;
  }();
  (void)once;
  return {};
}

}  // namespace

TEST(AdamW, FusedFollowsItsEquationsAndSkipsMissingGradients) {
  AdamW optimizer(fused());
  expect_follows(optimizer, adamw_rule(fused(), 0.1));
}

TEST(AdamW, FusedSlicesAndMeta) {
  AdamW optimizer(fused());
  expect_slices(optimizer);
  expect_meta(optimizer);
}

TEST(AdamW, FusedIsPlainInSinglePrecision) {
  AdamW fast(fused()), reference(plain());
  test::Random random(1);
  const at::Tensor a = random.normal({33, 17}), b = a.clone();
  ParameterShard x = make_shard(fast, info_of("w", a), a);
  ParameterShard y = make_shard(reference, info_of("w", b), b);
  for (int64_t step = 1; step <= 20; ++step) {
    x.grad = y.grad = random.normal({33, 17});
    fast.step({&x, 1}, {.step = step, .lr = 0.01});
    reference.step({&y, 1}, {.step = step, .lr = 0.01});
  }
  EXPECT_LT(a.sub(b).norm().div(b.norm()).item<double>(), 1e-6);
}

TEST(AdamW, FollowsItsEquationsAndSkipsMissingGradients) {
  AdamW optimizer(plain());
  expect_follows(optimizer, adamw_rule(plain(), 0.1));
}

TEST(AdamW, VectorsDoNotDecay) {
  AdamW optimizer(plain());
  expect_follows(optimizer, adamw_rule(plain(), 0.0), /*decay=*/false);
}

TEST(AdamW, ExcludedNamesDoNotDecay) {
  AdamWOptions options = plain();
  options.decay_exclude = {"lm_*", "w"};
  AdamW optimizer(options);
  expect_follows(optimizer, adamw_rule(options, 0.0));
}

TEST(AdamW, AGlobWithoutMatchIsRefused) {
  AdamWOptions options = plain();
  options.decay_exclude = {"model.*", "lm_haed*"};
  const std::vector<ParameterInfo> model = {{.name = "model.norm.weight"}, {.name = "lm_head"}};
  try {
    AdamW(options).check(model);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "[R-GROUPMATCH] optim/adamw: 'lm_haed*' of decay_exclude matches no parameter");
  }
  options.decay_exclude = {"model.*", "lm_head"};
  AdamW(options).check(model);
}

TEST(AdamW, SlicesOfAParameterAreUpdatedAlike) {
  AdamW optimizer(plain());
  expect_slices(optimizer);
}

TEST(AdamW, KeepsTwoStatesInTheStatisticsDtype) {
  const AdamW optimizer(plain());
  const auto spec = optimizer.state_spec({.name = "w", .dtype = at::kDouble});
  ASSERT_EQ(spec.size(), 2U);
  EXPECT_EQ(spec[0].dtype, at::kDouble);
  EXPECT_EQ(optimizer.state_spec({.name = "w", .dtype = at::kBFloat16})[1].dtype, at::kFloat);
}

TEST(AdamW, RunsOnMeta) {
  AdamW optimizer(plain());
  expect_meta(optimizer);
}

}  // namespace assay::optim
