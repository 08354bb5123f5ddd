// Regions: what two boxes share, and copies against a loop over single elements.
#include "core/checkpoint/region.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace assay::checkpoint {
namespace {

TEST(Region, PrintsAsPythonSlices) {
  EXPECT_EQ(print(Region{{0, 16}, {32, 16}}), "[0:32, 16:32]");
  EXPECT_EQ(print(Region{}), "[]");
  EXPECT_EQ(print(Shape{512, 128}), "[512, 128]");
}

TEST(Region, AScalarHasOneElement) {
  EXPECT_EQ(volume(whole({})), 1);
  EXPECT_TRUE(intersect(whole({}), whole({})).has_value());
  int runs = 0;
  for_each_run(whole({}), whole({}), whole({}), [&](int64_t from, int64_t to, int64_t count) {
    EXPECT_EQ(from + to, 0);
    EXPECT_EQ(count, 1);
    ++runs;
  });
  EXPECT_EQ(runs, 1);
}

TEST(Region, TouchingBoxesShareNothing) {
  EXPECT_FALSE(intersect({{0, 0}, {2, 4}}, {{2, 0}, {2, 4}}));
  EXPECT_FALSE(intersect({{0, 0}, {2, 4}}, {{1, 1}, {0, 2}})) << "an empty box";
  EXPECT_EQ(*intersect({{0, 0}, {3, 4}}, {{2, 1}, {9, 2}}), (Region{{2, 1}, {1, 2}}));
}

TEST(Region, KnowsWhatLiesInATensor) {
  EXPECT_TRUE(contains({3, 4}, {{3, 0}, {0, 4}}));
  EXPECT_FALSE(contains({3, 4}, {{2, 0}, {2, 4}}));
  EXPECT_FALSE(contains({3, 4}, {{-1, 0}, {2, 4}}));
  EXPECT_FALSE(contains({3, 4}, {{0}, {3}}));
  EXPECT_FALSE(contains({3}, {{1}, {INT64_MAX}})) << "no overflow";
}

class Boxes {
 public:
  explicit Boxes(unsigned seed) : random_(seed) {}
  int64_t number(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  Region box(const Shape& shape) {
    Region box;
    for (const int64_t n : shape) {
      box.begin.push_back(number(0, n));
      box.size.push_back(number(0, n - box.begin.back()));
    }
    return box;
  }

 private:
  std::mt19937 random_;
};

bool holds(const Region& region, const Shape& at) {
  for (size_t d = 0; d < at.size(); ++d) {
    if (at[d] < region.begin[d] || at[d] >= region.begin[d] + region.size[d]) return false;
  }
  return true;
}

TEST(Region, RunsTouchEachCommonElementOnceAtItsPlaceInBothBuffers) {
  Boxes boxes(5);
  for (int trial = 0; trial < 400; ++trial) {
    Shape shape(static_cast<size_t>(boxes.number(1, 4)));
    for (int64_t& n : shape) n = boxes.number(1, 5);
    const Region a = boxes.box(shape), b = boxes.box(shape);
    std::set<std::pair<int64_t, int64_t>> expected, seen;
    Shape at(shape.size(), 0);
    for (int64_t i = 0; i < volume(whole(shape)); ++i) {  // every element of the tensor
      int64_t rest = i;
      for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) at[d] = rest % shape[d];
      if (holds(a, at) && holds(b, at)) expected.emplace(index_in(a, at), index_in(b, at));
    }
    if (const auto part = intersect(a, b)) {
      for_each_run(*part, a, b, [&](int64_t from, int64_t to, int64_t count) {
        for (int64_t k = 0; k < count; ++k) {
          EXPECT_TRUE(seen.emplace(from + k, to + k).second) << "copied twice";
        }
      });
    }
    ASSERT_EQ(seen, expected) << print(a) << " and " << print(b) << " of " << print(shape);
  }
}

}  // namespace
}  // namespace assay::checkpoint
