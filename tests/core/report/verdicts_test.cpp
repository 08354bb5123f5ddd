// Stored verdicts: the last stage counts, ratios become per cent, every outcome has its words.
#include "core/report/verdicts.h"

#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/store/sample_study.h"

namespace assay::report {
namespace {

class Verdicts : public testing::Test {
 protected:
  Verdicts() : sample_(folder_ / "a.db") {
    execute("INSERT INTO comparisons VALUES(1, 1, 'float8', '" + store::id64('a') + "', '" +
            store::id64('b') + "', '{}', 'T2', 0)");
  }
  void execute(const std::string& sql) {
    SQLite::Database(file(), SQLite::OPEN_READWRITE).exec(sql);
  }
  std::string file() const { return (folder_ / "a.db").string(); }
  void add(const std::string& metric, int stage, const std::string& verdict, double estimate,
           double low, double high, const std::string& method) {
    execute(
        "INSERT INTO verdicts(comparison_id, metric, stage, verdict, reason, n_used,"
        " n_discarded, estimate, ci_lo, ci_hi, ci_level, mde, method_id, labels_json,"
        " computed_us, code_version) VALUES(1, '" +
        metric + "', " + std::to_string(stage) + ", '" + verdict + "', 'why', 20, 1, " +
        std::to_string(estimate) + ", " + std::to_string(low) + ", " + std::to_string(high) +
        ", 0.995, 0.011, '" + method + "', '[\"order\"]', 0, 'x')");
  }
  std::vector<VerdictRow> load() { return load_verdicts(store::Reader(folder_ / "a.db"), 1); }

  store::TempFolder folder_;
  store::SampleStore sample_;
};

TEST_F(Verdicts, RatiosAreShownInPerCentAndTheLastStageCounts) {
  add("step_time", 0, "SAME", 0, -0.01, 0.01, "pair.sr.v1");
  add("step_time", 1, "SLOWER", 0.05, 0.04, 0.06, "pair.sr.v1");
  add("step_time", 2, "SLOWER", 0.03, 0.025, 0.035, "pair.sr.v1");
  const auto rows = load();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_NEAR(*rows[0].change.value, 100 * std::expm1(0.03), 1e-9);
  EXPECT_NEAR(*rows[0].change.high, 100 * std::expm1(0.035), 1e-9);
  EXPECT_EQ(rows[0].unit, "%");
  EXPECT_EQ(rows[0].baseline, "bf16");
  EXPECT_EQ(rows[0].tier, "T2");
  EXPECT_EQ(rows[0].labels, (std::vector<std::string>{"order"}));
  EXPECT_EQ(verdict_sentence(rows[0]),
            "float8 against bf16, step_time: SLOWER, +3.05 % (99.5 % CI +2.53 to +3.56, n = 20)");
}

TEST_F(Verdicts, DifferencesKeepTheirUnit) {
  add("final_val_loss", 1, "PARITY", 0.0002, -0.0002, 0.0006, "seed.tost.v1");
  const auto rows = load();
  EXPECT_EQ(rows[0].unit, "nat");
  EXPECT_DOUBLE_EQ(*rows[0].change.value, 0.0002);
}

TEST_F(Verdicts, BytesAreRatiosAndFiguresBesideAVerdictAreNoClaims) {
  add("peak_allocated_bytes", 1, "BETTER", -0.07, -0.08, -0.06, "exact.v1");
  add("loss_at_equal_tokens", 1, "NOT_SHOWN", -0.01, -0.02, 0.0, "aligned.v1");
  const auto rows = load();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(verdict_sentence(rows[0]),
            "float8 against bf16, loss_at_equal_tokens: -0.0100 nat, beside the verdict");
  EXPECT_FALSE(is_claim(rows[0]));
  EXPECT_TRUE(is_claim(rows[1]));
  EXPECT_EQ(rows[1].unit, "%");
  EXPECT_NEAR(*rows[1].change.value, 100 * std::expm1(-0.07), 1e-9);
}

TEST_F(Verdicts, NoAnswerSaysWhatCouldNotBeSeen) {
  add("step_time", 1, "UNRESOLVED", 0.001, -0.02, 0.02, "pair.sr.v1");
  add("tokens_per_s", 1, "INVALID", 0.001, -0.02, 0.02, "pair.sr.v1");
  const auto rows = load();
  EXPECT_EQ(verdict_sentence(rows[0]),
            "float8 against bf16, step_time: UNRESOLVED (why, n = 20; effects below 1.11 % could "
            "not be seen)");
  EXPECT_EQ(verdict_sentence(rows[1]), "float8 against bf16, tokens_per_s: INVALID (why)");
}

TEST_F(Verdicts, PairsComeInRunOrderWithTheDiscardedOnes) {
  add("step_time", 1, "SAME", 0.001, -0.002, 0.002, "pair.sr.v1");
  for (const int64_t i : {1, 0}) {
    execute("INSERT INTO pairs VALUES(1, 1, " + std::to_string(i) + ", '" + (i ? "BA" : "AB") +
            "', 'p10', 1, 3, 0.1, 0.1, 0.0, " + std::to_string(i) + ".5, " + std::to_string(i) +
            ", NULL, '{}')");
  }
  const auto rows = load();
  ASSERT_EQ(rows[0].pairs.size(), 2u);
  EXPECT_TRUE(rows[0].pairs[0].baseline_first);
  EXPECT_FALSE(rows[0].pairs[0].discarded);
  EXPECT_DOUBLE_EQ(rows[0].pairs[1].change_pct, 1.5);
  EXPECT_TRUE(rows[0].pairs[1].discarded);
}

}  // namespace
}  // namespace assay::report
