// Generators against the action tables of the specification, written out by hand.
#include <gtest/gtest.h>

#include "assay/pipeline.h"

namespace assay {
namespace {

struct Table {
  std::string schedule;
  PipelineShape shape;
  std::string rows;
};

class Tables : public testing::TestWithParam<Table> {};

TEST_P(Tables, AreGenerated) {
  const auto& [schedule, shape, rows] = GetParam();
  EXPECT_EQ(print_schedule_csv(generate(schedule, shape)), rows);
}

INSTANTIATE_TEST_SUITE_P(
    TwoRanks, Tables,
    testing::Values(
        Table{"gpipe",
              {2, 1, 4},
              "0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3\n"
              "1F0,1F1,1F2,1F3,1B0,1B1,1B2,1B3\n"},
        Table{"1f1b",
              {2, 1, 4},
              "0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n"
              "1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n"},
        Table{"interleaved_1f1b",
              {2, 2, 4},
              "0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3\n"
              "1F0,1F1,3F0,3B0,3F1,3B1,1F2,1B0,1F3,1B1,3F2,3B2,3F3,3B3,1B2,1B3\n"},
        Table{"looped_bfs",
              {2, 2, 4},
              "0F0,0F1,0F2,0F3,2F0,2F1,2F2,2F3,2B3,2B2,2B1,2B0,0B3,0B2,0B1,0B0\n"
              "1F0,1F1,1F2,1F3,3F0,3F1,3F2,3F3,3B3,3B2,3B1,3B0,1B3,1B2,1B1,1B0\n"},
        Table{"interleaved_zb",
              {2, 1, 4},
              "0F0,0F1,0I0,0W0,0F2,0I1,0W1,0F3,0I2,0W2,0I3,0W3\n"
              "1F0,1I0,1F1,1I1,1W0,1F2,1I2,1W1,1F3,1I3,1W2,1W3\n"},
        Table{"interleaved_zb",
              {2, 2, 4},
              "0F0,0F1,2F0,2F1,2I0,2W0,0F2,2I1,2W1,0F3,0I0,0W0,2F2,0I1,0W1,2F3,2I2,2W2,2I3,2W3,0I2,"
              "0W2,0I3,0W3\n"
              "1F0,1F1,3F0,3I0,3F1,3I1,3W0,1F2,1I0,3W1,1F3,1I1,1W0,3F2,3I2,1W1,3F3,3I3,3W2,1I2,3W3,"
              "1I3,1W2,1W3\n"}));

INSTANTIATE_TEST_SUITE_P(
    FourRanks, Tables,
    testing::Values(
        Table{"1f1b",
              {4, 1, 8},
              "0F0,0F1,0F2,0F3,0B0,0F4,0B1,0F5,0B2,0F6,0B3,0F7,0B4,0B5,0B6,0B7\n"
              "1F0,1F1,1F2,1B0,1F3,1B1,1F4,1B2,1F5,1B3,1F6,1B4,1F7,1B5,1B6,1B7\n"
              "2F0,2F1,2B0,2F2,2B1,2F3,2B2,2F4,2B3,2F5,2B4,2F6,2B5,2F7,2B6,2B7\n"
              "3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3,3F4,3B4,3F5,3B5,3F6,3B6,3F7,3B7\n"},
        Table{"interleaved_zb",
              {4, 1, 8},
              "0F0,0F1,0F2,0F3,0I0,0W0,0F4,0I1,0W1,0F5,0I2,0W2,0F6,0I3,0W3,0F7,0I4,0W4,0I5,0W5,0I6,"
              "0W6,0I7,0W7\n"
              "1F0,1F1,1F2,1I0,1F3,1I1,1W0,1F4,1I2,1W1,1F5,1I3,1W2,1F6,1I4,1W3,1F7,1I5,1W4,1I6,1W5,"
              "1I7,1W6,1W7\n"
              "2F0,2F1,2I0,2F2,2I1,2F3,2I2,2W0,2F4,2I3,2W1,2F5,2I4,2W2,2F6,2I5,2W3,2F7,2I6,2W4,2I7,"
              "2W5,2W6,2W7\n"
              "3F0,3I0,3F1,3I1,3F2,3I2,3F3,3I3,3W0,3F4,3I4,3W1,3F5,3I5,3W2,3F6,3I6,3W3,3F7,3I7,3W4,"
              "3W5,3W6,3W7\n"},
        Table{"interleaved_1f1b",
              {4, 2, 8},
              "0F0,0F1,0F2,0F3,4F0,4F1,4F2,4F3,0F4,0F5,0F6,4B0,0F7,4B1,4F4,4B2,4F5,4B3,4F6,0B0,4F7,"
              "0B1,0B2,0B3,4B4,4B5,4B6,4B7,0B4,0B5,0B6,0B7\n"
              "1F0,1F1,1F2,1F3,5F0,5F1,5F2,5F3,1F4,5B0,1F5,5B1,1F6,5B2,1F7,5B3,5F4,1B0,5F5,1B1,5F6,"
              "1B2,5F7,1B3,5B4,5B5,5B6,5B7,1B4,1B5,1B6,1B7\n"
              "2F0,2F1,2F2,2F3,6F0,6F1,6F2,6B0,6F3,6B1,2F4,6B2,2F5,6B3,2F6,2B0,2F7,2B1,6F4,2B2,6F5,"
              "2B3,6F6,6B4,6F7,6B5,6B6,6B7,2B4,2B5,2B6,2B7\n"
              "3F0,3F1,3F2,3F3,7F0,7B0,7F1,7B1,7F2,7B2,7F3,7B3,3F4,3B0,3F5,3B1,3F6,3B2,3F7,3B3,7F4,"
              "7B4,7F5,7B5,7F6,7B6,7F7,7B7,3B4,3B5,3B6,3B7\n"},
        Table{"interleaved_zb",
              {4, 2, 4},
              "0F0,0F1,0F2,0F3,4F0,4F1,4F2,4F3,4I0,4W0,4I1,4W1,4I2,4W2,4I3,4W3,0I0,0W0,0I1,0W1,0I2,"
              "0W2,0I3,0W3\n"
              "1F0,1F1,1F2,1F3,5F0,5F1,5F2,5I0,5F3,5I1,5W0,5I2,5W1,5I3,5W2,1I0,5W3,1I1,1W0,1I2,1W1,"
              "1I3,1W2,1W3\n"
              "2F0,2F1,2F2,2F3,6F0,6F1,6I0,6F2,6I1,6F3,6I2,6W0,6I3,6W1,2I0,6W2,2I1,6W3,2I2,2W0,2I3,"
              "2W1,2W2,2W3\n"
              "3F0,3F1,3F2,3F3,7F0,7I0,7F1,7I1,7F2,7I2,7F3,7I3,7W0,3I0,7W1,3I1,7W2,3I2,7W3,3I3,3W0,"
              "3W1,3W2,3W3\n"}));

}  // namespace
}  // namespace assay
