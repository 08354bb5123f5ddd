// What trials choose: means over seeds, ties, failures, ends of the list, and the record of it.
#include "core/host/tuning.h"

#include <gtest/gtest.h>

#include <cmath>

#include "assay/error.h"
#include "core/store/reader.h"
#include "tests/core/store/sample_study.h"

namespace assay::host {
namespace {

using store::id64;

/// Two recipes with three factors: cells a, b, c; slots stand for seeds and factors.
class Choosing : public testing::Test {
 protected:
  Choosing() : sample_(folder_ / "a.db") { tune_.factors = {0.5, 1, 2}; }

  /// A trial that ended in `state` with this loss.
  void trial(const std::string& arm, size_t factor, double loss, const std::string& state = "ok") {
    const int64_t run = sample_.store.ensure_run(id64('a'), store::kMachine, "tune", 0, slot_++);
    cells_.push_back({arm, id64('a'), factor, 1e-3 * static_cast<double>(factor + 1), 101});
    runs_.push_back(run);
    if (state == "queued") return;
    const store::Claim claim = sample_.store
                                   .claim({.study_id = sample_.study_id,
                                           .machine_id = store::kMachine,
                                           .supervisor_id = sample_.supervisor_id,
                                           .env_id = id64('e'),
                                           .run_id = run})
                                   .value();
    const store::Metric metric{
        .name = "final_val_loss", .value = loss, .unit = "nat", .formula_id = "loss.v1"};
    if (state == "ok") sample_.store.put_metrics(claim.attempt_id, {&metric, 1});
    sample_.store.finish_attempt(claim.attempt_id, {.state = state});
  }
  std::vector<Choice> chosen() {
    const store::Reader reader(folder_ / "a.db");
    return choose(reader, tune_, cells_, runs_);
  }

  store::TempFolder folder_;
  store::SampleStore sample_;
  grid::Tune tune_{};
  std::vector<grid::TrialCell> cells_{};
  std::vector<int64_t> runs_{};
  int64_t slot_ = 0;
};

TEST_F(Choosing, TheLeastMeanWins) {
  tune_.seeds = {101, 102};
  for (const double shift : {0.0, 0.2}) {
    trial("adamw", 0, 3.0 + shift);
    trial("adamw", 1, 2.5 + shift);
    trial("adamw", 2, 2.6 - shift);
  }
  const auto choices = chosen();
  ASSERT_EQ(choices.size(), 1u);
  EXPECT_EQ(choices[0].factor, 2u);
  EXPECT_DOUBLE_EQ(choices[0].score, 2.5);
  EXPECT_DOUBLE_EQ(choices[0].value, 3e-3);
  EXPECT_TRUE(choices[0].edge);
}

TEST_F(Choosing, TiesGoToTheSmallerValueAndFailuresAreTheWorst) {
  trial("adamw", 0, 0, "fail");
  trial("adamw", 1, 2.5);
  trial("adamw", 2, 2.5);
  trial("lion", 0, std::nan(""));
  trial("lion", 1, 4);
  trial("lion", 2, 0, "oom");
  const auto choices = chosen();
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices[0].factor, 1u);
  EXPECT_FALSE(choices[0].edge);
  EXPECT_EQ(choices[1].arm, "lion");
  EXPECT_EQ(choices[1].factor, 1u);
}

TEST_F(Choosing, WaitsForAllAndRefusesARecipeWithoutAScore) {
  trial("adamw", 0, 2);
  trial("adamw", 1, 0, "queued");
  trial("adamw", 2, 2);
  EXPECT_THROW(chosen(), InfrastructureError);
  cells_.clear(), runs_.clear();
  for (const size_t factor : {0, 1, 2}) trial("lion", factor, 0, "fail");
  EXPECT_THROW(chosen(), Error);
}

TEST_F(Choosing, TheRecordHasEveryTrialAndTheChosenOnes) {
  trial("bf16", 0, 3);
  trial("bf16", 1, 2);
  trial("bf16", 2, 0, "fail");
  grid::Plan plan;
  plan.tune = tune_;
  const store::Reader reader(folder_ / "a.db");
  const auto recipe =
      reader.query("SELECT recipe_id FROM cells WHERE cell_id=?1", {store::Value(id64('a'))});
  plan.cells.emplace_back();
  plan.cells.back().arm = "bf16";
  plan.cells.back().recipe_id = *store::text(recipe.at(0, "recipe_id"));
  const auto choices = chosen();
  for (int again = 0; again < 2; ++again) {  // a second run of the study changes nothing
    record_trials(sample_.store, sample_.study_id, plan, cells_, runs_, choices);
    const auto rows = sample_.store.query(
        "SELECT arm, idx, value_json->>'$.\"optim.lr\"' lr, score, chosen FROM trials ORDER BY "
        "idx");
    ASSERT_EQ(rows.rows.size(), 3u);
    EXPECT_EQ(store::text(rows.at(0, "arm")), "bf16");
    EXPECT_EQ(store::real(rows.at(1, "lr")), 2e-3);
    EXPECT_EQ(store::real(rows.at(1, "score")), 2.0);
    EXPECT_EQ(store::integer(rows.at(1, "chosen")), 1);
    EXPECT_EQ(store::integer(rows.at(0, "chosen")), 0);
    EXPECT_EQ(store::real(rows.at(2, "score")), std::nullopt);
  }
}

}  // namespace
}  // namespace assay::host
