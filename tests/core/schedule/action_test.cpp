// Actions as text, both ways.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/error.h"
#include "assay/schedule.h"
#include "tests/core/schedule/shapes.h"

namespace assay {
namespace {

TEST(Actions, PrintAndParseAreInverse) {
  for (const char* text :
       {"0F1", "12B0", "1I3", "1W3", "0SEND_F1", "3RECV_F0", "4SEND_B2", "2RECV_B7", "0UNSHARD",
        "3RESHARD", "0REDUCE_GRAD", "(0F4;7B1)OVERLAP_F_B", "(2F4;3I0)OVERLAP_F_B"}) {
    EXPECT_EQ(print(parse_cell(text)), text);
  }
  const char* row = "0F0,(0F1;1B0)OVERLAP_F_B,(1F1;0B0)OVERLAP_F_B,0W3";
  EXPECT_EQ(print(row_of(row)), row);
}

TEST(Actions, OfAPairSayThatTheyStartTogether) {
  const ActionList pair = parse_cell("(0F4;7B1)OVERLAP_F_B");
  ASSERT_EQ(pair.size(), 2U);
  EXPECT_EQ(pair[0], (Action{0, ActionKind::forward, 4, true}));
  EXPECT_EQ(pair[1], (Action{7, ActionKind::backward, 1, false}));
  EXPECT_EQ(unit_at(pair, 0).size(), 2U);
  EXPECT_EQ(unit_at(pair, 1).size(), 1U);
}

struct Bad {
  const char* text;
  const char* hint;
};

class BadActions : public testing::TestWithParam<Bad> {};

TEST_P(BadActions, AreRefusedWithTheNearest) {
  try {
    parse_cell(GetParam().text);
    FAIL() << GetParam().text;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::StartsWith("'" + std::string(GetParam().text)));
    EXPECT_THAT(error.hint(), testing::HasSubstr(GetParam().hint));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Text, BadActions,
    testing::Values(Bad{"", "an action is stage, letters, microbatch"}, Bad{"0f1", "'0F1'"},
                    Bad{"0SEND_G1", "'0SEND_B1' or '0SEND_F1'"},
                    Bad{"0REDUCE_GRADS", "'0REDUCE_GRAD'"}, Bad{"0UNSHARD3", "'0UNSHARD'"},
                    Bad{"0F", "'0F0'"}, Bad{"F0", "'0F0'"}, Bad{"0F1x", "0F1"},
                    Bad{"-1F0", "an action is"}, Bad{"0F-1", "'0F1'"}, Bad{"0X1", "'0F1'"},
                    Bad{"99999999999999999999F0", "an action is"},
                    Bad{"(0F1;1B0)", "(0F4;7B1)OVERLAP_F_B"}, Bad{"(0F1)OVERLAP_F_B", "(0F4;7B1)"},
                    Bad{"(0B1;1F0)OVERLAP_F_B", "a forward and a backward"}));

}  // namespace
}  // namespace assay
