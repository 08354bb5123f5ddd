// A Chrome trace says what was recorded, where it was, and what it leaves out.
#include "core/report/chrome_trace.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/core/store/sample_study.h"

namespace assay::report {
namespace {

using nlohmann::json;

class ChromeTrace : public testing::Test {
 protected:
  ChromeTrace() {
    const auto claim = sample_.claim().value();
    attempt_ = claim.attempt_id;
    for (int64_t rank = 0; rank < 2; ++rank) {
      auto rows = store::spool_rows(attempt_, rank);
      rows.pop_back();
      rows.push_back({{"t", "samples"}, {"name", "optimizer_s"}, {"step", 20}, {"value", 0.01}});
      sample_.store.import_rows(attempt_, rank, "spool", rows, 1000);
    }
  }
  json trace(int64_t rank = 0) {
    return chrome_trace(store::Reader(folder_ / "a.db"), attempt_, rank);
  }

  store::TempFolder folder_;
  store::SampleStore sample_{folder_ / "a.db"};
  int64_t attempt_ = 0;
};

TEST_F(ChromeTrace, EachRankHasItsFile) {
  const store::Reader reader(folder_ / "a.db");
  EXPECT_EQ(traced_ranks(reader, attempt_), (std::vector<int64_t>{0, 1}));
  const json document = trace(1);
  for (const json& event : document["traceEvents"]) EXPECT_EQ(event["pid"], 1);
}

TEST_F(ChromeTrace, StepsStandWhereTheyWere) {
  std::map<std::string, json> events;
  const json document = trace();
  for (const json& event : document["traceEvents"]) events[event["name"]] = event;
  const json &first = events.at("step 1"), &last = events.at("step 40");
  EXPECT_EQ(first["ph"], "X");
  EXPECT_DOUBLE_EQ(first["ts"], 0);
  EXPECT_NEAR(first["dur"], store::sample_step_s(1) * 1e6, 1e-3);
  const double end = last["ts"].get<double>() + last["dur"].get<double>();
  const double started = 200'000 - store::sample_step_s(1) * 1e6;
  EXPECT_NEAR(end, 40 * 200'000 - started, 1);
  EXPECT_EQ(events.at("eval 40")["cat"], "eval");
}

TEST_F(ChromeTrace, TheOptimizerClosesItsStepAndTheWaitOpensIt) {
  json step, optimizer;
  double waits = 0;
  const json document = trace();
  for (const json& event : document["traceEvents"]) {
    if (event["name"] == "step 20") step = event;
    if (event["name"] == "optimizer") optimizer = event;
    waits += event["name"] == "data wait";
  }
  EXPECT_EQ(waits, 40);
  EXPECT_NEAR(optimizer["dur"], 1e4, 1e-6);
  EXPECT_NEAR(optimizer["ts"].get<double>() + optimizer["dur"].get<double>(),
              step["ts"].get<double>() + step["dur"].get<double>(), 1e-3);
}

TEST_F(ChromeTrace, NothingIsInvented) {
  const json document = trace();
  EXPECT_NE(document["otherData"]["not_recorded"].get<std::string>().find("single operations"),
            std::string::npos);
  for (const json& event : document["traceEvents"]) {
    EXPECT_NE(event["name"], "forward");
    EXPECT_NE(event["name"], "backward");
    if (event["name"] != "step 19") continue;
    EXPECT_TRUE(event["args"]["forward_s"].is_null());  // recorded for step 20 alone
  }
}

}  // namespace
}  // namespace assay::report
