// Change points on known series, and the history of a configuration over builds and machines.
#include "core/report/history.h"

#include <gtest/gtest.h>

#include <boost/random/mersenne_twister.hpp>
#include <boost/random/normal_distribution.hpp>
#include <nlohmann/json.hpp>

#include "assay/error.h"
#include "tests/core/store/sample_study.h"

namespace assay::report {
namespace {

/// `sizes[i]` values around `levels[i]`, with 0.5 % noise.
std::vector<double> series(const std::vector<double>& levels, const std::vector<size_t>& sizes,
                           uint64_t seed = 1) {
  boost::random::mt19937_64 random(seed);
  boost::random::normal_distribution<double> noise(0, 0.005);
  std::vector<double> values;
  for (size_t i = 0; i < levels.size(); ++i) {
    for (size_t k = 0; k < sizes[i]; ++k) values.push_back(levels[i] * (1 + noise(random)));
  }
  return values;
}

TEST(ChangePoints, FindsEachStepAtItsPlace) {
  const auto found = change_points(series({100, 110, 95}, {15, 15, 15}));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].index, 15u);
  EXPECT_NEAR(found[0].change(), 0.10, 0.01);
  EXPECT_LT(found[0].p, 0.01);
  EXPECT_EQ(found[1].index, 30u);
  EXPECT_NEAR(found[1].change(), 95.0 / 110 - 1, 0.01);
}

TEST(ChangePoints, OneWildValueIsNoChange) {
  auto values = series({100}, {30});
  values[17] = 160;
  EXPECT_TRUE(change_points(values).empty());
}

TEST(ChangePoints, SmallOrFewIsNoChange) {
  EXPECT_TRUE(change_points(series({100, 100.6}, {40, 40})).empty()) << "below the effect";
  EXPECT_TRUE(change_points(series({100, 150}, {2, 2})).empty()) << "too few to tell";
  EXPECT_TRUE(change_points({}).empty());
  EXPECT_TRUE(change_points(std::vector<double>(20, 5.0)).empty()) << "a constant";
}

/// Property: of 200 series that never change, about alpha show a change. With the effect asked
/// for on top, at most 6 in 200 may (a binomial with p = .01 exceeds that in 1 of 200 tries).
TEST(ChangePoints, RarelySeesWhatIsNotThere) {
  int alarms = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    alarms +=
        !change_points(series({100}, {16}, seed), {.min_effect = 0, .permutations = 199}).empty();
  }
  EXPECT_LE(alarms, 6);
}

class HistoryTest : public testing::Test {
 protected:
  HistoryTest() : sample_(folder_ / "a.db") {}

  /// Cell `a` runs once more on this machine with this throughput.
  void run(double tokens_per_s, const std::string& machine = store::kMachine, char cell = 'a') {
    const int64_t id = sample_.store.ensure_run(store::id64(cell), machine, "measure", 0, ++slot_);
    const auto claim = sample_.store.claim({.study_id = sample_.study_id,
                                            .machine_id = machine,
                                            .supervisor_id = sample_.supervisor_id,
                                            .env_id = store::id64('e'),
                                            .run_id = id});
    const store::Metric metric{
        .name = "tokens_per_s", .value = tokens_per_s, .unit = "1/s", .formula_id = "tps.p50.v1"};
    sample_.store.put_metrics(claim->attempt_id, {&metric, 1});
    sample_.store.finish_attempt(claim->attempt_id, {.state = "ok"});
  }
  History load(const std::string& cell, const std::string& metric = "tokens_per_s") {
    return load_history(store::Reader(folder_ / "a.db"), cell, metric);
  }

  store::TempFolder folder_;
  store::SampleStore sample_;
  int64_t slot_ = 10;
};

TEST_F(HistoryTest, MachinesAreSeriesOfTheirOwnAndChangesAreNamed) {
  for (const double value : series({9000, 8100}, {12, 12})) run(value);
  for (const double value : series({20000}, {5})) run(value, "other");
  const History history = load("bf16");
  ASSERT_EQ(history.series.size(), 2u);
  EXPECT_EQ(history.series[0].machine_id, store::kMachine);
  ASSERT_EQ(history.series[0].changes.size(), 1u);
  EXPECT_EQ(history.series[0].changes[0].index, 12u);
  EXPECT_TRUE(history.series[1].changes.empty());
  const std::string text = history_text(history);
  EXPECT_NE(text.find("machine 7c1e04: 24 runs, 1 change\n"), std::string::npos) << text;
  EXPECT_NE(text.find("-- changed by -"), std::string::npos) << text;
  const auto json = history_json(history);
  EXPECT_EQ(json["series"][0]["changes"][0]["run_id"], history.series[0].points[12].run_id);
  EXPECT_EQ(json["series"][0]["points"].size(), 24u);
}

TEST_F(HistoryTest, RebuiltBinariesStayInTheSeries) {
  run(9000);
  store::Study again = store::sample_study("later");
  again.yaml_sha256 = store::id64('7');
  again.cells = {store::sample_cell('f', 0, "bf16")};
  again.cells[0].config_id = store::id64('a');  // the same configuration, other binaries
  again.cells[0].binaries = {{"worker", "new"}};
  sample_.study_id = sample_.store.add_study(again);
  run(9100, store::kMachine, 'f');
  const History history = load("later/bf16");
  ASSERT_EQ(history.series.size(), 1u);
  ASSERT_EQ(history.series[0].points.size(), 2u);
  EXPECT_EQ(history.series[0].points[0].study, "layouts");
  EXPECT_EQ(history.series[0].points[1].study, "later");
  EXPECT_NE(history.series[0].points[0].binaries, history.series[0].points[1].binaries);
  EXPECT_EQ(load("aaaaaaaa").series[0].points.size(), 2u);  // by config id
}

TEST_F(HistoryTest, FailedRunsAndOtherCellsAreNoPoints) {
  run(9000);
  run(7000, store::kMachine, 'b');
  EXPECT_EQ(load("bf16").series[0].points.size(), 1u);
  EXPECT_TRUE(load("float8-tp2").series.empty());
  EXPECT_NE(history_text(load("float8-tp2")).find("no run of it ended well"), std::string::npos);
}

TEST_F(HistoryTest, MistypedNamesAreSuggested) {
  run(9000);
  const auto hint = [&](const std::string& cell, const std::string& metric) {
    try {
      load(cell, metric);
    } catch (const Error& error) {
      return error.hint();
    }
    return std::string("no error");
  };
  EXPECT_EQ(hint("bf61", "tokens_per_s"), "did you mean 'bf16'?");
  EXPECT_EQ(hint("bf16", "token_per_s"), "did you mean 'tokens_per_s'?");
}

}  // namespace
}  // namespace assay::report
