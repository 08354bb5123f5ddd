// T0 and T1 on made-up series: honest reordering passes, injected faults do not.
#include "core/evidence/bits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <boost/random/mersenne_twister.hpp>
#include <boost/random/normal_distribution.hpp>
#include <cmath>
#include <limits>

namespace assay::evidence {
namespace {

using testing::HasSubstr;

StepBits at(int64_t step, double loss, double norm) {
  return {.step = step,
          .loss = loss,
          .grad_norm = norm,
          .loss_bits = std::bit_cast<int64_t>(loss),
          .grad_norm_bits = std::bit_cast<int64_t>(norm)};
}

/// 30 steps of a falling loss; rounding noise grows as a trajectory's does.
BitSeries series(uint64_t seed = 0, double noise = 0) {
  boost::random::mt19937_64 random(seed);
  boost::random::normal_distribution<double> normal;
  BitSeries s{.checksums = {1.0}};
  for (int64_t k = 1; k <= 30; ++k) {
    const double off = noise * static_cast<double>(k);
    const double loss = 5.6 * std::exp(-0.03 * static_cast<double>(k));
    s.steps.push_back(at(k, loss + off * normal(random), 1.5 + off * normal(random)));
  }
  return s;
}

std::vector<BitSeries> honest(double noise) {
  std::vector<BitSeries> runs;
  for (uint64_t i = 1; i <= 8; ++i) runs.push_back(series(i, noise));
  return runs;
}

TEST(Bits, EqualSeriesAreParity) {
  const Verdict v = judge_bits(series(), series());
  EXPECT_EQ(v.call, Call::parity);
  EXPECT_EQ(v.n_used, 30);
  EXPECT_EQ(v.estimate, 0);
}

TEST(Bits, TheFirstDifferenceIsNamed) {
  BitSeries other = series();
  const double next = std::nextafter(*other.steps[6].loss, 9);
  other.steps[6] = at(7, next, 1.5);
  const Verdict v = judge_bits(series(), other);
  EXPECT_EQ(v.call, Call::no_parity);
  EXPECT_THAT(v.reason, HasSubstr("loss differs at step 7: 0x"));
  EXPECT_THAT(v.reason, HasSubstr("(1 ulp)"));
}

TEST(Bits, AHalvedGradientShowsInTheNormAlone) {
  BitSeries other = series();
  other.steps[0].grad_norm_bits = std::bit_cast<int64_t>(0.75);
  EXPECT_THAT(judge_bits(series(), other).reason, HasSubstr("gradient norm differs at step 1"));
}

TEST(Bits, NothingIsEqualThatWasNotMeasured) {
  EXPECT_EQ(judge_bits({}, {}).call, Call::not_shown);
  BitSeries shorter = series();
  shorter.steps.pop_back();
  EXPECT_EQ(judge_bits(series(), shorter).reason, "lengths");
  BitSeries weights = series();
  weights.checksums = {2.0};
  EXPECT_EQ(judge_bits(series(), weights).call, Call::no_parity);
  BitSeries no_bits = series();
  no_bits.steps[3].loss_bits.reset();
  EXPECT_EQ(judge_bits(series(), no_bits).reason, "no_bits");
  BitSeries bare = series();
  bare.checksums.clear();
  EXPECT_THAT(judge_bits(bare, bare).labels, testing::ElementsAre("no_checksum"));
}

constexpr double kEpsilon = std::numeric_limits<float>::epsilon();

TEST(Envelope, HonestReorderingsRaiseNoAlarm) {
  constexpr double kNoise = 1e-6;
  int alarms = 0;
  for (uint64_t trial = 0; trial < 100; ++trial) {
    std::vector<BitSeries> perturbed;
    for (uint64_t i = 0; i < 8; ++i) perturbed.push_back(series(1000 + 8 * trial + i, kNoise));
    const Verdict v =
        judge_envelope(series(), perturbed, series(100'000 + trial, kNoise), kEpsilon);
    alarms += v.call != Call::parity;
  }
  EXPECT_LE(alarms, 1);  // .02 to .06 % a run
}

TEST(Envelope, FaultsAreFoundInLossOrNorm) {
  const auto perturbed = honest(1e-6);
  BitSeries shifted = series();
  for (StepBits& s : shifted.steps) s = at(s.step, *s.loss * 1.01, *s.grad_norm);
  const Verdict loss = judge_envelope(series(), perturbed, shifted, kEpsilon);
  EXPECT_EQ(loss.call, Call::no_parity);
  EXPECT_THAT(loss.reason, HasSubstr("loss of step 1 is off by"));
  BitSeries halved = series();
  for (StepBits& s : halved.steps) s = at(s.step, *s.loss, *s.grad_norm / 2);
  EXPECT_THAT(judge_envelope(series(), perturbed, halved, kEpsilon).reason,
              HasSubstr("gradient norm of step 1"));
}

TEST(Envelope, NeedsAllPerturbationsAndSteps) {
  auto perturbed = honest(1e-6);
  perturbed.pop_back();
  const Verdict few = judge_envelope(series(), perturbed, series(), kEpsilon);
  EXPECT_EQ(few.call, Call::not_shown);
  EXPECT_EQ(few.reason, "too_few");
  EXPECT_EQ(few.more, 1);
  BitSeries brief = series();
  brief.steps.resize(19);
  EXPECT_EQ(judge_envelope(brief, honest(1e-6), series(), kEpsilon).reason, "too_short");
}

TEST(Envelope, ANonFiniteCandidateIsOutside) {
  BitSeries nan = series();
  nan.steps[4].loss = std::nullopt;  // stored as NULL
  EXPECT_THAT(judge_envelope(series(), honest(1e-6), nan, kEpsilon).reason,
              HasSubstr("loss of step 5 is missing on one side"));
}

}  // namespace
}  // namespace assay::evidence
