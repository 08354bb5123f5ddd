// The event simulation against the specification's tables and closed forms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/schedule/closed_form.h"
#include "core/schedule/simulate.h"
#include "tests/core/schedule/shapes.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

Timeline run(const std::string& name, const PipelineShape& shape, const ChunkTimes& times = {}) {
  const auto ranks = ranks_of_stages(pipeline_schedule(name).placement, shape);
  return simulate(generate(name, shape), ranks, shape.microbatches, times);
}

/// F = I = W = 1.
struct UnitRow {
  std::string schedule;
  PipelineShape shape;
  double makespan, bubble, share;
  std::vector<int64_t> peak;
};

class UnitTimes : public testing::TestWithParam<UnitRow> {};

TEST_P(UnitTimes, GiveTheRow) {
  const UnitRow& row = GetParam();
  const Timeline line = run(row.schedule, row.shape);
  EXPECT_EQ(line.makespan, row.makespan);
  EXPECT_EQ(line.bubble, row.bubble);
  EXPECT_NEAR(line.bubble_share(), row.share, 0.00005);
  EXPECT_EQ(line.peak_chunks, row.peak);
}

INSTANTIATE_TEST_SUITE_P(
    TwoRanks, UnitTimes,
    testing::Values(UnitRow{"gpipe", {2, 1, 4}, 15, 3, 0.2000, {4, 4}},
                    UnitRow{"1f1b", {2, 1, 4}, 15, 3, 0.2000, {2, 1}},
                    UnitRow{"interleaved_1f1b", {2, 2, 4}, 27, 3, 0.1111, {5, 3}},
                    UnitRow{"interleaved_1f1b", {2, 4, 4}, 51, 3, 0.0588, {9, 7}},
                    UnitRow{"looped_bfs", {2, 2, 4}, 27, 3, 0.1111, {8, 8}},
                    UnitRow{"looped_bfs", {2, 4, 4}, 51, 3, 0.0588, {16, 16}},
                    UnitRow{"interleaved_zb", {2, 1, 4}, 13, 1, 0.0769, {2, 2}},
                    UnitRow{"interleaved_zb", {2, 2, 4}, 25, 1, 0.0400, {4, 4}},
                    UnitRow{"gpipe", {2, 1, 8}, 27, 3, 0.1111, {8, 8}},
                    UnitRow{"1f1b", {2, 1, 8}, 27, 3, 0.1111, {2, 1}},
                    UnitRow{"interleaved_1f1b", {2, 2, 8}, 51, 3, 0.0588, {5, 3}},
                    UnitRow{"interleaved_zb", {2, 1, 8}, 25, 1, 0.0400, {2, 2}}));

INSTANTIATE_TEST_SUITE_P(
    FourRanks, UnitTimes,
    testing::Values(UnitRow{"gpipe", {4, 1, 4}, 21, 9, 0.4286, {4, 4, 4, 4}},
                    UnitRow{"1f1b", {4, 1, 4}, 21, 9, 0.4286, {4, 3, 2, 1}},
                    UnitRow{"interleaved_1f1b", {4, 2, 4}, 33, 9, 0.2727, {8, 8, 7, 5}},
                    UnitRow{"interleaved_zb", {4, 2, 4}, 27, 3, 0.1111, {8, 8, 8, 8}},
                    UnitRow{"gpipe", {4, 1, 8}, 33, 9, 0.2727, {8, 8, 8, 8}},
                    UnitRow{"1f1b", {4, 1, 8}, 33, 9, 0.2727, {4, 3, 2, 1}},
                    UnitRow{"interleaved_1f1b", {4, 2, 8}, 57, 9, 0.1579, {11, 9, 7, 5}},
                    UnitRow{"interleaved_1f1b", {4, 4, 8}, 105, 9, 0.0857, {19, 17, 15, 13}},
                    UnitRow{"looped_bfs", {4, 2, 8}, 57, 9, 0.1579, {16, 16, 16, 16}},
                    UnitRow{"interleaved_zb", {4, 1, 8}, 27, 3, 0.1111, {4, 4, 4, 4}},
                    UnitRow{"interleaved_zb", {4, 2, 8}, 51, 3, 0.0588, {8, 8, 8, 8}},
                    UnitRow{"1f1b", {4, 1, 16}, 57, 9, 0.1579, {4, 3, 2, 1}},
                    UnitRow{"interleaved_1f1b", {4, 2, 16}, 105, 9, 0.0857, {11, 9, 7, 5}},
                    UnitRow{"interleaved_zb", {4, 1, 16}, 51, 3, 0.0588, {4, 4, 4, 4}},
                    UnitRow{"interleaved_zb", {4, 2, 16}, 99, 3, 0.0303, {8, 8, 8, 8}}));

TEST(UnequalTimes, GiveTheRows) {  // F = 2, I = 3, W = 1, p = 4, m = 8
  const ChunkTimes times{.forward = 2, .input = 3, .weight = 1};
  const struct {
    const char* schedule;
    int64_t chunks;
    double makespan, idle;
  } rows[] = {{"gpipe", 1, 66, 18},
              {"1f1b", 1, 66, 18},
              {"interleaved_1f1b", 2, 114, 18},
              {"interleaved_zb", 1, 60, 12},
              {"interleaved_zb", 2, 108, 12}};
  for (const auto& row : rows) {
    const Timeline line = run(row.schedule, {4, row.chunks, 8}, times);
    EXPECT_EQ(line.makespan, row.makespan) << row.schedule;
    for (const double busy : line.busy) EXPECT_EQ(line.makespan - busy, row.idle) << row.schedule;
  }
}

TEST(Latency, GivesTheRows) {  // c per message between ranks, p = 4, m = 8, F = I = W = 1
  const struct {
    const char* schedule;
    int64_t chunks;
    double short_c, long_c;  // c = 0.1, c = 0.5
  } rows[] = {{"gpipe", 1, 33.6, 36.0},          {"1f1b", 1, 34.6, 41.0},
              {"interleaved_1f1b", 2, 58.4, 64}, {"looped_bfs", 2, 57.6, 60.0},
              {"interleaved_zb", 1, 28.2, 33.0}, {"interleaved_zb", 2, 52.6, 59.0}};
  for (const auto& row : rows) {
    const PipelineShape shape{4, row.chunks, 8};
    EXPECT_NEAR(run(row.schedule, shape, {.latency = 0.1}).makespan, row.short_c, 1e-9)
        << row.schedule;
    EXPECT_NEAR(run(row.schedule, shape, {.latency = 0.5}).makespan, row.long_c, 1e-9)
        << row.schedule;
  }
}

/// Integer times that meet the conditions of the schedule's makespan.
ChunkTimes random_times(const std::string& schedule, std::mt19937& random) {
  const auto draw = [&](int least, int most) {
    return static_cast<double>(std::uniform_int_distribution(least, most)(random));
  };
  const double weight = draw(1, 9);
  if (schedule == "zbv") return {.forward = weight, .input = weight, .weight = weight};
  if (schedule == "interleaved_zb") {
    return {.forward = weight + draw(0, 9), .input = weight + draw(0, 9), .weight = weight};
  }
  return {.forward = draw(1, 9), .input = draw(1, 9), .weight = weight};
}

TEST(ClosedForms, EqualTheSimulationForRandomTimes) {
  std::mt19937 random(11);
  int makespans = 0;
  for (const auto& [schedule, shape] : all_shapes(5, 12)) {
    const ChunkTimes times = random_times(std::string(schedule.name), random);
    const ClosedForm form = closed_form(schedule, shape, times);
    const Timeline line = run(std::string(schedule.name), shape, times);
    const std::string name = label(schedule, shape);
    if (form.makespan) {
      EXPECT_EQ(line.makespan, *form.makespan) << name;
      ++makespans;
    }
    if (!form.peak_chunks.empty()) {
      EXPECT_EQ(line.peak_chunks, form.peak_chunks) << name;
    }
    int64_t messages = 0;
    for (const int64_t sent : line.messages) messages += sent;
    EXPECT_EQ(messages, form.messages) << name;
  }
  EXPECT_GT(makespans, 300);
}

// Where the conditions do not hold, no formula is shown.
TEST(ClosedForms, AreSilentOutsideTheirConditions) {
  const auto form = [](const char* name, const PipelineShape& shape, const ChunkTimes& times = {}) {
    return closed_form(pipeline_schedule(name), shape, times);
  };
  EXPECT_FALSE(form("interleaved_1f1b", {4, 2, 3}).makespan);
  EXPECT_FALSE(form("interleaved_zb", {4, 1, 8}, {.forward = 1, .input = 2, .weight = 2}).makespan);
  EXPECT_FALSE(form("interleaved_zb", {4, 1, 8}, {.forward = 2, .input = 1, .weight = 2}).makespan);
  EXPECT_FALSE(form("zbv", {4, 2, 8}, {.forward = 2, .input = 1, .weight = 1}).makespan);
  EXPECT_FALSE(form("zbv", {4, 2, 7}).makespan);
  EXPECT_TRUE(form("zbv", {4, 2, 7}).peak_chunks.empty());
  EXPECT_FALSE(form("dualpipev", {4, 2, 8}).makespan);
  EXPECT_FALSE(form("gpipe", {4, 1, 8}, {.latency = 0.5}).makespan);
}

// A closed form that is silent should be so for a reason: the formula would be wrong.
TEST(ClosedForms, WouldBeWrongWhereTheyAreSilent) {
  EXPECT_NE(run("interleaved_zb", {4, 1, 8}, {.forward = 1, .input = 2, .weight = 2}).makespan,
            8 * 5 + 3 * (1 + 2 - 2));
  EXPECT_NE(run("zbv", {4, 2, 8}, {.forward = 2, .input = 1, .weight = 1}).makespan,
            (6 * 8 + 3) * 2);
}

// What `assay schedule list` says of m is what is refused.
TEST(Rules, OfMicrobatchesAgreeWithTheRefusals) {
  for (const PipelineSchedule& schedule : pipeline_schedules()) {
    const std::string_view rule = microbatches_rule(schedule);
    for (int64_t p = 1; p <= 6; ++p) {
      for (int64_t m = 1; m <= 30; ++m) {
        const bool taken = !refusal(schedule, {p, schedule.default_chunks, m});
        const bool ruled = rule == "any" || (rule == "m >= p" && m >= p) ||
                           (rule == "m >= 2p" && m >= 2 * p) ||
                           (rule == "m mod (m div p) = 0" && m % std::max<int64_t>(1, m / p) == 0);
        EXPECT_EQ(taken, ruled) << schedule.name << " p=" << p << " m=" << m;
      }
    }
  }
}

TEST(Messages, LeaveRanksAtTheEndsWithFewer) {
  // 2mv, minus m on rank 0 (no B of stage 0), minus m on the last rank (no F of the last stage).
  EXPECT_THAT(run("interleaved_1f1b", {4, 2, 8}).messages, ElementsAre(24, 32, 32, 24));
  EXPECT_THAT(run("1f1b", {4, 1, 8}).messages, ElementsAre(8, 16, 16, 8));
  EXPECT_THAT(run("zbv", {3, 2, 6}).messages, ElementsAre(12, 24, 12));
}

TEST(Simulation, OfALoweredScheduleTakesAsLong) {
  for (const auto& [schedule, shape] : all_shapes(4, 9)) {
    const ChunkTimes times{.forward = 2, .input = 3, .weight = 1, .latency = 0.25};
    const auto ranks = ranks_of_stages(schedule.placement, shape);
    const auto compute = generate(schedule.name, shape);
    const Timeline plain = simulate(compute, ranks, shape.microbatches, times);
    const Timeline lowered = simulate(lower(compute, ranks), ranks, shape.microbatches, times);
    EXPECT_EQ(plain.makespan, lowered.makespan) << label(schedule, shape);
    EXPECT_EQ(plain.peak_chunks, lowered.peak_chunks) << label(schedule, shape);
    EXPECT_EQ(plain.messages, lowered.messages) << label(schedule, shape);
  }
}

TEST(Simulation, SpansOfARankAreInOrderAndCoverItsWork) {
  const Timeline line = run("dualpipev", {4, 2, 10});
  for (size_t rank = 0; rank < 4; ++rank) {
    double busy = 0, last = 0;
    for (const Span& span : line.ranks[rank]) {
      EXPECT_GE(span.start, last);
      busy += span.end - span.start;
      last = span.end;
    }
    EXPECT_EQ(busy, line.busy[rank]);
    EXPECT_EQ(busy, 10 * 2 * 3);
  }
}

}  // namespace
}  // namespace assay
