// Curves of recipes: means over seeds, thinning that keeps peaks, grouping, differences, bands.
#include "core/report/curves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/report/band.h"

namespace assay::report {
namespace {

StepSample train_step(int64_t step, double loss) {
  return {.step = step,
          .kind = "steady",
          .loss = loss,
          .tokens_total = 100 * step,
          .elapsed_s = 0.5 * static_cast<double>(step)};
}

RunRow run_of(int64_t id, const std::string& cell, const std::vector<double>& losses) {
  RunRow run{.run_id = id, .cell_id = cell, .state = "ok"};
  for (const double loss : losses) {
    run.steps.push_back(train_step(static_cast<int64_t>(run.steps.size()) + 1, loss));
  }
  return run;
}

Model two_recipes() {
  Model model;
  model.runs = {run_of(1, "a1", {5, 4, 3}), run_of(2, "a1", {5, 4, 3}), run_of(3, "a2", {5, 2, 1}),
                run_of(4, "b", {6, 5, 4})};
  model.rows = {{.label = "a", .baseline = true, .runs = {1, 2, 3}}, {.label = "b", .runs = {4}}};
  return model;
}

TEST(Curves, RepeatsOfOneSeedCountOnce) {
  const auto curves = loss_curves(two_recipes(), LossKind::training, Over::tokens);
  ASSERT_EQ(curves.size(), 2u);
  ASSERT_EQ(curves[0].seeds.size(), 2u);
  EXPECT_DOUBLE_EQ(curves[0].mean[1].y, 3);  // (4 + 2) / 2, not (4 + 4 + 2) / 3
  EXPECT_DOUBLE_EQ(curves[0].mean[1].x, 200);
  EXPECT_DOUBLE_EQ(loss_curves(two_recipes(), LossKind::training, Over::seconds)[0].mean[1].x, 1);
  EXPECT_TRUE(loss_curves(two_recipes(), LossKind::validation, Over::tokens).empty());
}

TEST(Curves, FailedRunsAndMissingLossesAreLeftOut) {
  Model model = two_recipes();
  model.runs[2].state = "fail";
  model.runs[3].steps[1].loss.reset();
  const auto curves = loss_curves(model, LossKind::training, Over::tokens);
  EXPECT_EQ(curves[0].seeds.size(), 1u);
  EXPECT_EQ(curves[1].mean.size(), 2u);
}

TEST(Curves, AreDrawnOnceWhereTheyCannotBeToldApart) {
  Model model = two_recipes();
  model.runs.push_back(run_of(5, "c", {6.001, 5, 4}));
  model.rows.push_back({.label = "c", .runs = {5}});
  const auto curves = loss_curves(model, LossKind::training, Over::tokens);
  const auto groups = group_curves(curves, 0.01);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_TRUE(groups[0].baseline);
  EXPECT_EQ(groups[1].label(), "b and 1 more, equal on this scale");
  EXPECT_EQ(group_curves(curves, 1e-6).size(), 3u);
}

TEST(Curves, ThinningKeepsEndsAndPeaks) {
  std::vector<Point> points;
  std::mt19937_64 random(3);
  for (int i = 0; i < 10'000; ++i) {
    points.push_back({static_cast<double>(i), static_cast<double>(random() % 1000)});
  }
  points[4321].y = 1e6;
  points[7777].y = -1e6;
  const auto few = thinned(points, 100);
  EXPECT_LE(few.size(), 100u);
  EXPECT_EQ(few.front().x, 0);
  EXPECT_EQ(few.back().x, 9999);
  const auto has = [&](double x) {
    return std::any_of(few.begin(), few.end(), [&](const Point& p) { return p.x == x; });
  };
  EXPECT_TRUE(has(4321));
  EXPECT_TRUE(has(7777));
  EXPECT_TRUE(std::is_sorted(few.begin(), few.end(),
                             [](const Point& a, const Point& b) { return a.x < b.x; }));
  EXPECT_EQ(thinned(points, 20'000).size(), points.size());
}

TEST(Curves, TheRunningMedianDropsSpikesAndKeepsSteps) {
  std::vector<Point> points;
  for (int i = 0; i < 20; ++i) points.push_back({static_cast<double>(i), i < 10 ? 5.0 : 3.0});
  points[4].y = 100;
  const auto smooth = running_median(points, 5);
  ASSERT_EQ(smooth.size(), points.size());
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(smooth[static_cast<size_t>(i)].y, i < 10 ? 5.0 : 3.0) << i;
    EXPECT_EQ(smooth[static_cast<size_t>(i)].x, i);
  }
  EXPECT_EQ(running_median(points, 1)[4].y, 100);
}

TEST(Curves, DifferencesAreTakenAtEqualTokens) {
  const std::vector<Point> base = {{0, 10}, {100, 6}};
  EXPECT_DOUBLE_EQ(*value_at(base, 25), 9);
  EXPECT_FALSE(value_at(base, 101));
  const auto gap = difference({{25, 8}, {50, 8}, {150, 1}}, base);
  ASSERT_EQ(gap.size(), 2u);  // 150 lies behind the baseline's end
  EXPECT_DOUBLE_EQ(gap[0].y, -1);
  EXPECT_DOUBLE_EQ(gap[1].y, 0);
}

std::vector<std::vector<Point>> random_seeds(std::mt19937_64& random, size_t seeds, size_t points) {
  std::normal_distribution<double> noise;
  std::vector<std::vector<Point>> curves(seeds);
  for (auto& curve : curves) {
    for (size_t k = 0; k < points; ++k) curve.push_back({double(k), noise(random)});
  }
  return curves;
}

TEST(Band, FollowsScaleAndNotShift) {
  std::mt19937_64 random(5);
  auto seeds = random_seeds(random, 6, 8);
  const auto half = simultaneous_band(seeds);
  ASSERT_EQ(half.size(), 8u);
  EXPECT_EQ(half, simultaneous_band(seeds)) << "the same runs must give the same band";
  for (auto& seed : seeds) {
    for (Point& p : seed) p.y = 3 * p.y + 7;
  }
  const auto scaled = simultaneous_band(seeds);
  for (size_t k = 0; k < half.size(); ++k) EXPECT_NEAR(scaled[k], 3 * half[k], 1e-9);
}

TEST(Band, IsZeroWhereSeedsAgreeAndNothingForOne) {
  const std::vector<std::vector<Point>> equal(5, {{0, 2}, {1, 1}});
  EXPECT_EQ(simultaneous_band(equal), (std::vector<double>{0, 0}));
  EXPECT_TRUE(simultaneous_band({equal[0]}).empty());
}

/// One point: T = |mean* - mean| / se is the bootstrap of a mean; its 95 % point for n = 20 normal
/// values is near 1.96 sqrt((n - 1) / n) = 1.91. Over 30 independent points it must be wider.
TEST(Band, HoldsAllPointsAtOnce) {
  std::mt19937_64 random(11);
  const auto one = random_seeds(random, 20, 1);
  const auto many = random_seeds(random, 20, 30);
  const auto factor = [](const std::vector<std::vector<Point>>& seeds) {
    double mean = 0, square = 0;
    for (const auto& seed : seeds) mean += seed[0].y / 20;
    for (const auto& seed : seeds) square += std::pow(seed[0].y - mean, 2);
    return simultaneous_band(seeds)[0] / std::sqrt(square / 19 / 20);
  };
  EXPECT_NEAR(factor(one), 1.91, 0.15);
  EXPECT_GT(factor(many), 2.5);
}

}  // namespace
}  // namespace assay::report
