// The near-miss rule: distance, limit, order, count and wording.
#include "core/base/nearest.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

using Words = std::vector<std::string>;

TEST(Nearest, CountsASwapAsOneAndIgnoresCase) {
  EXPECT_EQ(nearest("loin", Words{"lion", "adamw"}), Words{"lion"});
  EXPECT_EQ(nearest("LION", Words{"lion"}), Words{"lion"});
  EXPECT_EQ(nearest("modle.name", Words{"model.name", "model.flavour"}), Words{"model.name"});
}

TEST(Nearest, LimitIsAThirdOfTheLengthButAtLeastOne) {
  EXPECT_EQ(nearest("tp", Words{"pp", "cp", "zzz"}), (Words{"cp", "pp"}));
  EXPECT_TRUE(nearest("abcdef", Words{"abcxyz"}).empty());         // 3 > 6 / 3
  EXPECT_FALSE(nearest("abcdefghi", Words{"abcdefxyz"}).empty());  // 3 <= 9 / 3
  EXPECT_TRUE(nearest("", Words{"ab"}).empty());
}

TEST(Nearest, NearestFirstTiesAlphabeticalAtMostThree) {
  EXPECT_EQ(nearest("beta3", Words{"beta9", "beta2", "beta1", "beta0", "beta"}),
            (Words{"beta", "beta0", "beta1"}));
  EXPECT_EQ(nearest("fulll!", Words{"fuxl", "full"}), Words{"full"});
}

TEST(Nearest, Wording) {
  EXPECT_EQ(did_you_mean({}), "");
  EXPECT_EQ(did_you_mean({"a"}), "did you mean 'a'?");
  EXPECT_EQ(did_you_mean({"a", "b"}), "did you mean 'a' or 'b'?");
  EXPECT_EQ(did_you_mean({"a", "b", "c"}), "did you mean 'a', 'b' or 'c'?");
}

}  // namespace
}  // namespace assay
