// SGD against its equations in double precision.
#include "sgd.h"

#include <gtest/gtest.h>

#include "optimizer_checks.h"

namespace assay::optim {
namespace {

ScalarRule sgd_rule(const SgdOptions& o) {
  return [o, b = 0.0, first = true](int64_t, double lr, double g, double w) mutable {
    g += o.weight_decay * w;
    b = first ? g : o.momentum * b + (1 - o.dampening) * g;
    first = false;
    if (o.momentum == 0) return w - lr * g;
    return w - lr * (o.nesterov ? g + o.momentum * b : b);
  };
}

void expect_follows_options(const SgdOptions& options) {
  Sgd optimizer(options);
  expect_follows(optimizer, sgd_rule(options));
}

}  // namespace

TEST(Sgd, FollowsItsEquations) {
  expect_follows_options({});
  expect_follows_options({.momentum = 0.8, .dampening = 0.3, .weight_decay = 0.2});
  expect_follows_options({.momentum = 0.8, .nesterov = true});
  expect_follows_options({.momentum = 0.0, .weight_decay = 0.1});
}

TEST(Sgd, WithoutMomentumKeepsNoState) {
  EXPECT_TRUE(Sgd({.momentum = 0.0}).state_spec({}).empty());
  EXPECT_EQ(Sgd({}).state_spec({}).size(), 1U);
}

TEST(Sgd, SlicesOfAParameterAreUpdatedAlike) {
  Sgd optimizer({.nesterov = true});
  expect_slices(optimizer);
}

TEST(Sgd, RunsOnMeta) {
  Sgd optimizer({});
  expect_meta(optimizer);
}

}  // namespace assay::optim
