// Schedules at plan time: files with their places, shapes, and layers.
#include "core/grid/pipeline_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/grid/plan.h"
#include "tests/core/grid/study_files.h"

namespace assay::grid {
namespace {

using testing::HasSubstr;

constexpr const char* kTwoRanks =
    "0F0,0F1,0B0,0B1\n"
    "1F0,1B0,1F1,1B1\n";

class PipelineCheckTest : public StudyFiles {
 protected:
  std::optional<PipelineRefusal> of_file(const std::string& text, int64_t ranks = 2,
                                         int64_t microbatches = 2) {
    PipelineCheck check;
    return check.refusal({.schedule = "csv",
                          .csv = write("mine.csv", text).string(),
                          .ranks = ranks,
                          .microbatches = microbatches});
  }

  /// What a plan of one cell on two pipeline ranks says; its world is 2.
  std::string refused(const std::string& pp, const std::string& train = "global_batch: 2") {
    return errors(
        "assay: 1\nstudy: s\nbase: {model: llama3, data: synthetic, mesh.pp: 2,\n" +
        ("  parallel.pp: {name: pp, " + pp + "}, train: {micro_batch: 1, " + train + "}}\n"));
  }
};

TEST_F(PipelineCheckTest, AWholeScheduleIsTaken) {
  EXPECT_FALSE(of_file(kTwoRanks));
  PipelineCheck check;
  EXPECT_FALSE(check.refusal({.schedule = "of another plugin", .ranks = 2}));
}

TEST_F(PipelineCheckTest, FilesAreRefusedWithPlaceAndValues) {
  const auto rows = of_file(kTwoRanks, 4);
  EXPECT_EQ(rows->rule, "R-CSV");
  EXPECT_THAT(rows->text, HasSubstr("mine.csv:2:1: the schedule has 2 rows for 4 ranks"));
  const auto microbatches = of_file(kTwoRanks, 2, 8);
  EXPECT_THAT(microbatches->text,
              HasSubstr("mine.csv:1:1: the schedule has 2 microbatches, train.grad_accum is 8"));
  EXPECT_THAT(of_file("0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n")->text, HasSubstr("mine.csv:2:"));
  EXPECT_THAT(of_file("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n")->text, HasSubstr("rank 1 waits at"));
  EXPECT_THAT(of_file("0F0,what\n1F0\n")->text, HasSubstr("mine.csv:1:5: "));
}

TEST_F(PipelineCheckTest, AFileIsReadOnce) {
  PipelineCheck check;
  const PipelineQuestion question{.schedule = "csv",
                                  .csv = write("mine.csv", kTwoRanks).string(),
                                  .ranks = 2,
                                  .microbatches = 2};
  EXPECT_FALSE(check.refusal(question));
  write("mine.csv", "nonsense");
  EXPECT_FALSE(check.refusal(question));
  EXPECT_TRUE(PipelineCheck().refusal(question));
}

TEST_F(PipelineCheckTest, KnownSchedulesAreJudgedByShapeAndLayers) {
  PipelineCheck check;
  const auto ask = [&](const char* name, int64_t chunks, int64_t m, int64_t layers) {
    const auto refused = check.refusal(
        {.schedule = name, .ranks = 2, .chunks = chunks, .microbatches = m, .layers = layers});
    return refused ? refused->rule : "";
  };
  EXPECT_EQ(ask("1f1b", 0, 2, 4), "");
  EXPECT_EQ(ask("dualpipev", 0, 3, 4), "R-PPM");
  EXPECT_EQ(ask("interleaved_1f1b", 0, 5, 4), "R-PPM");
  EXPECT_EQ(ask("zbv", 3, 4, 4), "R-PPV");
  EXPECT_EQ(ask("interleaved_zb", 4, 2, 4), "R-PPL");
  EXPECT_EQ(ask("interleaved_zb", 4, 2, 0), "") << "layers are not known";
}

TEST_F(PipelineCheckTest, PlansRefuseWithTheKeyThatNamesTheFile) {
  write("mine.csv", kTwoRanks);
  const std::string text = refused("schedule: csv, csv: mine.csv", "global_batch: 8");
  EXPECT_THAT(text, HasSubstr("study.yaml:4:47: refused[R-CSV]: parallel/pp: mine.csv:1:1: "
                              "the schedule has 2 microbatches, train.grad_accum is 8"));
  EXPECT_THAT(refused("schedule: csv"),
              HasSubstr("[R-CSV]: parallel/pp: schedule csv has no file"));
  EXPECT_THAT(refused("schedule: csv, csv: nowhere.csv"), HasSubstr("[R-CSV]: parallel/pp: "));
  EXPECT_THAT(refused("schedule: interleaved_1f1b, v: 8"), HasSubstr("[R-PPL]: parallel/pp: "));
  const Plan taken = plan(
      "assay: 1\nstudy: s\nbase: {model: llama3, data: synthetic, mesh.pp: 2, parallel.pp: {name: "
      "pp, schedule: csv, csv: mine.csv}, train: {micro_batch: 1, global_batch: 2}}\n");
  EXPECT_EQ(taken.cells.size(), 1U);
}

}  // namespace
}  // namespace assay::grid
