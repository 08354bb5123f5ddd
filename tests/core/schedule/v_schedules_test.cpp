// ZB-V and DualPipeV, which have no table: the properties of their definitions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "core/schedule/simulate.h"
#include "core/schedule/validate.h"
#include "tests/core/schedule/shapes.h"

namespace assay {
namespace {

using testing::Each;

/// (p, m) for all p in 2..4, m in 2p..4p.
std::vector<std::pair<int64_t, int64_t>> sizes() {
  std::vector<std::pair<int64_t, int64_t>> all;
  for (int64_t p = 2; p <= 4; ++p) {
    for (int64_t m = 2 * p; m <= 4 * p; ++m) all.emplace_back(p, m);
  }
  return all;
}

class VSchedules : public testing::TestWithParam<std::pair<int64_t, int64_t>> {
 protected:
  VSchedules() : p(GetParam().first), m(GetParam().second) {}
  Timeline run(const char* name, const ChunkTimes& times = {}) const {
    return simulate(generate(name, {p, 2, m}), ranks_of_stages(StagePlacement::v, {p, 2, m}), m,
                    times);
  }
  const int64_t p, m;
};

INSTANTIATE_TEST_SUITE_P(All, VSchedules, testing::ValuesIn(sizes()));

TEST_P(VSchedules, AreValidAndComplete) {
  for (const char* name : {"zbv", "dualpipev"}) {
    const auto lists = generate(name, {p, 2, m});
    EXPECT_THAT(validate(lists, m).problems, testing::IsEmpty()) << name;
    for (int64_t rank = 0; rank < p; ++rank) {
      std::map<std::pair<int64_t, char>, int64_t> count;  // by stage and F, B or I (b), B or W (w)
      for (const Action& action : lists[static_cast<size_t>(rank)]) {
        const auto kind = action.kind;
        if (kind == ActionKind::forward) ++count[{action.stage, 'F'}];
        if (kind == ActionKind::backward || kind == ActionKind::backward_input) {
          ++count[{action.stage, 'b'}];
        }
        if (kind == ActionKind::backward || kind == ActionKind::backward_weight) {
          ++count[{action.stage, 'w'}];
        }
      }
      for (const int64_t stage : {rank, 2 * p - 1 - rank}) {
        for (const char kind : {'F', 'b', 'w'}) EXPECT_EQ((count[{stage, kind}]), m) << name;
      }
      EXPECT_EQ(count.size(), 6U);
    }
  }
}

TEST_P(VSchedules, KeepAsManyChunksAliveOnEveryRank) {
  EXPECT_THAT(run("zbv").peak_chunks, Each(2 * p));
  EXPECT_THAT(run("dualpipev").peak_chunks, Each(2 * p + 1));
}

TEST_P(VSchedules, SendOverTheSameBoundaries) {
  for (const char* name : {"zbv", "dualpipev"}) {
    int64_t sum = 0;
    for (const int64_t sent : run(name).messages) sum += sent;
    EXPECT_EQ(sum, 2 * m * (2 * p - 2)) << name;
  }
}

TEST_P(VSchedules, ZbvIsIdleOnlyWhileThePipelineFills) {
  const Timeline line = run("zbv");
  EXPECT_EQ(line.makespan, static_cast<double>(6 * m + p - 1));
  EXPECT_EQ(line.bubble, static_cast<double>(p - 1));
  for (const auto& spans : line.ranks) {
    for (size_t i = 1; i < spans.size(); ++i) EXPECT_EQ(spans[i].start, spans[i - 1].end);
  }
}

TEST_P(VSchedules, DualpipevIdlesOnTheLastRankAsItsFormulaSays) {
  std::mt19937 random(static_cast<uint32_t>(100 * p + m));
  const auto draw = [&] { return std::uniform_int_distribution(1, 9)(random); };
  for (int trial = 0; trial < 20; ++trial) {
    ChunkTimes times;
    times.forward = times.input = draw();
    times.weight = std::min<double>(draw(), times.forward);
    times.overlapped = times.forward + times.backward();
    const Timeline line = run("dualpipev", times);
    const double idle = line.makespan - line.busy.back();
    const double pair = times.pair(), b = times.backward(), w = times.weight;
    EXPECT_EQ(idle, static_cast<double>(p - 1) * (pair + b - 3 * w))
        << "F=I=" << times.forward << " W=" << w;
  }
}

}  // namespace
}  // namespace assay
