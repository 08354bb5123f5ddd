// Schedule files: reading what was written, and the place of every mistake.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "assay/error.h"
#include "core/schedule/csv.h"
#include "tests/core/schedule/shapes.h"

namespace assay {
namespace {

using testing::HasSubstr;

std::string problems(const std::string& text, int64_t ranks = 0, int64_t microbatches = 0) {
  return render(parse_schedule_csv(text, "s.csv", ranks, microbatches).problems);
}

TEST(Csv, ReadsBackWhatItWrites) {
  for (const auto& [schedule, shape] : all_shapes(4, 8)) {
    const auto lists = generate(schedule.name, shape);
    const auto ranks = ranks_of_stages(schedule.placement, shape);
    for (const auto& written : {lists, lower(lists, ranks)}) {
      const ScheduleReading reading = parse_schedule_csv(print_schedule_csv(written), "s.csv");
      ASSERT_TRUE(reading.problems.empty()) << render(reading.problems);
      EXPECT_EQ(reading.file.lists, written);
      EXPECT_EQ(reading.file.rank_of_stage, ranks);
      EXPECT_EQ(reading.file.microbatches, shape.microbatches);
      EXPECT_EQ(reading.file.lowered, written != lists);
    }
  }
}

TEST(Csv, EmptyCellsAreIdleAndCarryNoTiming) {
  const ScheduleReading reading =
      parse_schedule_csv("0F0,0F1,,,0B0,,0B1\r\n,1F0, 1B0 ,1F1,1B1,,\r\n\n", "s.csv");
  ASSERT_TRUE(reading.problems.empty()) << render(reading.problems);
  EXPECT_EQ(print_schedule_csv(reading.file.lists), "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
}

TEST(Csv, NamesEveryCellThatIsNoAction) {
  EXPECT_EQ(problems("0F0,0G0,0B0\n1F0, 1b0\n"),
            "s.csv:1:5: error[R-CSV]: '0G0' is no schedule action\n"
            "    1 | 0F0,0G0,0B0\n"
            "      |     ^~~\n"
            "  hint: did you mean '0B0', '0F0' or '0I0'?\n"
            "s.csv:2:6: error[R-CSV]: '1b0' is no schedule action\n"
            "    2 | 1F0, 1b0\n"
            "      |      ^~~\n"
            "  hint: did you mean '1B0', '1F0' or '1I0'?\n");
}

TEST(Csv, PointsAtTheActionThatIsWrong) {
  EXPECT_EQ(problems("0F0,0B0,0F0\n"),
            "s.csv:1:9: error[R-CSV]: 0F0 is there twice\n"
            "    1 | 0F0,0B0,0F0\n"
            "      |         ^~~\n");
  EXPECT_EQ(problems("0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n"),
            "s.csv:2:12: error[R-CSV]: stage 1 misses 1B1 (or I and W); there are 2 microbatches\n"
            "    2 | 1F0,1B0,1F1\n"
            "      |            ^\n");
  EXPECT_EQ(problems("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n"),
            "s.csv:1:5: error[R-CSV]: dead-lock: no rank can go on\n"
            "    1 | 0F0,0B0,0F1,0B1\n"
            "      |     ^~~\n"
            "  rank 0 waits at 0B0 (action 2) for 1B0, action 4 of rank 1\n"
            "  rank 1 waits at 1F1 (action 1) for 0F1, action 3 of rank 0\n");
}

TEST(Csv, HoldsTheFileAgainstTheRun) {
  EXPECT_THAT(problems("0F0,0B0\n1F0,1B0\n", 4, 1),
              HasSubstr("s.csv:2:1: error[R-CSV]: the schedule has 2 rows for 4 ranks"));
  EXPECT_THAT(problems("0F0,0B0\n", 1, 2), HasSubstr("stage 0 misses 0F1; there are 2"));
  EXPECT_EQ(problems("0F0,0B0\n", 1, 1), "");
}

TEST(Csv, AnEmptyFileAndAnEmptyRowAreNoSchedule) {
  EXPECT_THAT(problems(""), HasSubstr("s.csv:1:1: error[R-CSV]: the file has no schedule in it"));
  EXPECT_THAT(problems("\n \n"), HasSubstr("no schedule in it"));
  EXPECT_THAT(problems("0F0,0B0\n,,\n1F0,1B0\n"), HasSubstr("s.csv:2:3: error[R-CSV]: rank 1 has"));
}

TEST(Csv, ForPluginsIsOneError) {
  const auto file = std::filesystem::temp_directory_path() / "assay_schedule_csv_test.csv";
  std::ofstream(file) << "0F0,0B0\n";
  EXPECT_EQ(read_schedule_csv(file).microbatches, 1);
  std::ofstream(file) << "0F0,0B0,0Q1\n";
  try {
    read_schedule_csv(file);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), "R-CSV: " + file.string() + ":1:9: '0Q1' is no schedule action");
    EXPECT_THAT(error.hint(), HasSubstr("did you mean"));
  }
  std::filesystem::remove(file);
  EXPECT_THROW(read_schedule_csv(file), Error);
}

}  // namespace
}  // namespace assay
