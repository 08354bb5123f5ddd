// Lion against its own equation in double precision, and against the promises of optimizer.h.
#include "lion.h"

#include <gtest/gtest.h>

#include "optimizer_checks.h"

namespace assay::optim {
namespace {

ScalarRule lion_rule(const LionOptions& o, double decay) {
  return [o, decay, m = 0.0](int64_t, double lr, double g, double w) mutable {
    const double c = o.beta1 * m + (1 - o.beta1) * g;
    w -= lr * ((c > 0) - (c < 0) + decay * w);
    m = o.beta2 * m + (1 - o.beta2) * g;
    return w;
  };
}

}  // namespace

TEST(Lion, FollowsItsEquationAndSkipsMissingGradients) {
  Lion optimizer({});
  expect_follows(optimizer, lion_rule({}, 0.1));
}

TEST(Lion, VectorsDoNotDecay) {
  Lion optimizer({});
  expect_follows(optimizer, lion_rule({}, 0.0), /*decay=*/false);
}

TEST(Lion, SlicesOfAParameterAreUpdatedAlike) {
  Lion optimizer({});
  expect_slices(optimizer);
}

TEST(Lion, RunsOnMeta) {
  Lion optimizer({});
  expect_meta(optimizer);
}

}  // namespace assay::optim
