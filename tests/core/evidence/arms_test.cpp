// Names of recipes: what the slugs of their seeds share.
#include <gtest/gtest.h>

#include "core/evidence/assess.h"

namespace assay::evidence {
namespace {

TEST(Arms, ALabelIsWhatTheSlugsOfItsSeedsShare) {
  EXPECT_EQ(shared_label({"bf16_s1"}), "bf16_s1");
  EXPECT_EQ(shared_label({"bf16_s1", "bf16_s2"}), "bf16");
  EXPECT_EQ(shared_label({"bf16_s101", "bf16_s102", "bf16_s103"}), "bf16");
  EXPECT_EQ(shared_label({"lion_x0.5_s10", "lion_x0.5_s11"}), "lion_x0.5");
  EXPECT_EQ(shared_label({"bf16-seed1", "bf16-seed2"}), "bf16");
  EXPECT_EQ(shared_label({"bf16_s1", "bf16_s1~0a1b2c"}), "bf16_s1");
  EXPECT_EQ(shared_label({"s1", "s2"}), "s1");  // nothing else is there
}

}  // namespace
}  // namespace assay::evidence
