// explain, replay and selftest from the command line: what they print, refuse and write.
#include <gtest/gtest.h>

#include "core/base/files.h"
#include "core/store/reader.h"
#include "tests/core/cli/command.h"
#include "tests/core/report/sample_report.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using store::integer;

class Why : public testing::Test {
 protected:
  Answer run(std::vector<std::string> words) {
    words.insert(words.end(), {"--db", sample_.file().string()});
    return assay_command(std::move(words));
  }
  std::string run_id(const std::string& state, const std::string& which = "min") {
    return std::to_string(
        *integer(store::Reader(sample_.file())
                     .query("SELECT " + which + "(run_id) FROM runs WHERE state='" + state + "'")
                     .rows.at(0)[0]));
  }

  report::SampleReport sample_;
  store::TempFolder folder_;
};

TEST_F(Why, ExplainPutsTheSidesBesideEachOther) {
  const Answer answer = run({"explain", "bf16", "float8"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  for (const char* words : {"A  bf16   n = ", "B  float8   n = ", "data wait", "exposed comm.",
                            "rest", "sum of parts", "operators: not recorded"}) {
    EXPECT_TRUE(answer.says(words)) << words << "\n" << answer.out;
  }
}

TEST_F(Why, ExplainOfARunWithItselfHasNoDifference) {
  const std::string id = run_id("ok");
  const auto document = nlohmann::json::parse(run({"explain", id, id, "--json"}).out);
  EXPECT_EQ(document["schema_version"], 1);
  EXPECT_EQ(document["a"], document["b"]);
  EXPECT_TRUE(document["same_machine"].get<bool>());
  EXPECT_GT(document["a"]["steps"], 0);
  EXPECT_TRUE(document["a"]["parts_s"]["backward"].is_null());  // the sample has no such series
  EXPECT_NEAR(document["a"]["sum_of_parts_s"], document["a"]["step_s"], 1e-12);
}

TEST_F(Why, ExplainWritesATracePerRank) {
  const std::string id = run_id("ok");
  const fs::path traces = folder_ / "traces";
  const Answer answer = run({"explain", id, id, "--trace", traces.string()});
  EXPECT_EQ(answer.code, 0) << answer.err;
  const fs::path file = traces / ("run" + id + "-rank0.trace.json");
  ASSERT_TRUE(fs::exists(file)) << answer.err;
  EXPECT_GT(nlohmann::json::parse(read_file(file))["traceEvents"].size(), 40u);
}

TEST_F(Why, ExplainRefusesWhatIsNotThere) {
  EXPECT_EQ(run({"explain", "bf16", "float88"}).code, 2);
  EXPECT_TRUE(run({"explain", "bf16", "float88"}).says("did you mean 'float8'"));
  EXPECT_EQ(run({"explain", "999", "999"}).code, 2);
  const Answer failed = run({"explain", run_id("fail"), run_id("ok")});
  EXPECT_EQ(failed.code, 4);
  EXPECT_TRUE(failed.says("no run has a timed step"));
}

TEST_F(Why, ReplayRefusesWithItsReason) {
  EXPECT_TRUE(run({"replay", "999"}).says("there is no run 999"));
  const Answer queued = run({"replay", run_id("queued")});
  EXPECT_EQ(queued.code, 2);
  EXPECT_TRUE(queued.says("there is nothing to repeat"));
  // The sample's ids are made up: no configuration has them.
  const Answer other = run({"replay", run_id("ok")});
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(other.says("error[H10]")) << other.err;
}

TEST_F(Why, SelftestSimulatesWithoutADatabase) {
  const std::vector<std::string> words = {"selftest", "--simulate", "--noise", "drift", "--equal",
                                          "40",       "--injected", "20",      "--json"};
  const Answer answer = run(words);
  const auto document = nlohmann::json::parse(answer.out);
  EXPECT_TRUE(document["simulated"].get<bool>());
  ASSERT_EQ(document["methods"].size(), 2u);
  EXPECT_EQ(document["methods"][0]["equal"]["comparisons"], 40);
  EXPECT_EQ(document["methods"][1]["injected"].size(), 4u);
  EXPECT_EQ(answer.out, run(words).out);
}

TEST_F(Why, SelftestSaysWhatItNeedsAndThatNothingWasMeasured) {
  EXPECT_EQ(run({"selftest"}).code, 2);
  EXPECT_TRUE(run({"selftest"}).says("--simulate"));
  EXPECT_TRUE(run({"selftest", "--budget", "soon"}).says("is no duration"));
  EXPECT_TRUE(run({"selftest", "--budget", "1s"}).says("holds no study 'selftest'"));
  const Answer last = run({"selftest", "--last"});
  EXPECT_EQ(last.code, 4);
  EXPECT_TRUE(last.says("no comparison is whole yet"));
  EXPECT_TRUE(last.says("power on this machine: not measured"));
}

}  // namespace
}  // namespace assay::cli
