// What shapes the schedules take, where stages and layers go.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/error.h"
#include "assay/pipeline.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// "text | hint" of the Error that `call` throws.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
  return "no error";
}

std::string refused(const std::string& name, const PipelineShape& shape) {
  return error_of([&] { generate(name, shape); });
}

TEST(Shapes, ThatAreRefusedSayWhyAndNameTheNearest) {
  EXPECT_EQ(
      refused("1f1b", {4, 1, 3}),
      "R-PPM: 1f1b needs at least p = 4 microbatches; m is 3 (p is 4) | nearest: m = 4; gpipe "
      "takes any m");
  EXPECT_EQ(
      refused("dualpipev", {3, 2, 5}),
      "R-PPM: dualpipev needs at least 2p = 6 microbatches; m is 5 (p is 3) | nearest: m = 6");
  EXPECT_THAT(refused("zbv", {3, 2, 5}), HasSubstr("R-PPM: zbv needs at least 2p = 6"));
  EXPECT_EQ(
      refused("interleaved_1f1b", {2, 2, 5}),
      "R-PPM: interleaved_1f1b cuts the microbatches in m div p = 2 equal rounds; m is 5 (p is "
      "2) | nearest: m = 4 or 6");
  EXPECT_EQ(
      refused("interleaved_zb", {4, 2, 13}),
      "R-PPM: interleaved_zb cuts the microbatches in m div p = 3 equal rounds; m is 13 (p is "
      "4) | nearest: m = 12 or 15");
  EXPECT_EQ(refused("1f1b", {4, 2, 8}),
            "R-PPV: 1f1b has exactly 1 chunk per rank; v is 2 | nearest: v = 1");
  EXPECT_EQ(refused("looped_bfs", {4, 1, 8}),
            "R-PPV: looped_bfs has at least 2 chunks per rank; v is 1 | nearest: v = 2");
  EXPECT_EQ(refused("zbv", {4, 3, 8}),
            "R-PPV: zbv has exactly 2 chunks per rank; v is 3 | nearest: v = 2");
  EXPECT_THAT(refused("interleaved_zb", {4, 0, 8}), HasSubstr("R-PPV"));
  EXPECT_THAT(refused("gpipe", {0, 1, 8}), HasSubstr("R-PPM"));
  EXPECT_THAT(refused("gpipe", {2, 1, 0}), HasSubstr("R-PPM"));
}

TEST(Shapes, AtTheEdgeAreTaken) {
  EXPECT_EQ(refused("1f1b", {4, 1, 4}), "no error");
  EXPECT_EQ(refused("gpipe", {4, 1, 1}), "no error");
  EXPECT_EQ(refused("interleaved_1f1b", {4, 2, 3}), "no error");  // one round of fewer than p
  EXPECT_EQ(refused("interleaved_1f1b", {4, 2, 7}), "no error");  // one round of more than p
  EXPECT_EQ(refused("interleaved_zb", {4, 1, 10}), "no error");
  EXPECT_EQ(refused("dualpipev", {3, 2, 6}), "no error");
  EXPECT_EQ(error_of([] { generate("zbv", {3, 2, 2}, {.allow_short = true}); }), "no error");
}

TEST(Shapes, OfAnUnknownScheduleSuggestANearOne) {
  EXPECT_EQ(error_of([] { pipeline_schedule("1f1p"); }),
            "no pipeline schedule '1f1p' | did you mean '1f1b'?");
  EXPECT_THAT(
      error_of([] { pipeline_schedule("chimera"); }),
      HasSubstr("there are gpipe, 1f1b, interleaved_1f1b, looped_bfs, interleaved_zb, zbv"));
}

TEST(Placement, GoesRoundOrDownAndUp) {
  EXPECT_THAT(ranks_of_stages(StagePlacement::loop, {3, 2, 1}), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(ranks_of_stages(StagePlacement::v, {3, 2, 1}), ElementsAre(0, 1, 2, 2, 1, 0));
  EXPECT_THAT(ranks_of_stages(StagePlacement::v, {1, 2, 1}), ElementsAre(0, 0));
}

std::vector<int64_t> with_middle(int64_t first, int64_t middle, size_t count, int64_t last) {
  std::vector<int64_t> split(count, middle);
  split.insert(split.begin(), first);
  split.push_back(last);
  return split;
}

TEST(LayerSplit, MakesRoomForEmbeddingAndHead) {
  EXPECT_THAT(split_layers(32, 4), ElementsAre(8, 9, 8, 7));
  EXPECT_EQ(split_layers(126, 8), with_middle(15, 16, 6, 15));
  EXPECT_EQ(split_layers(126, 16), with_middle(7, 8, 14, 7));
  EXPECT_THAT(split_layers(4, 2), ElementsAre(2, 2));
  EXPECT_THAT(split_layers(7, 3, 0, 0), ElementsAre(3, 2, 2));
  EXPECT_THAT(split_layers(5, 1), ElementsAre(5));
  EXPECT_THAT(split_layers(2, 4), ElementsAre(0, 1, 1, 0));  // embedding alone, head alone
}

TEST(LayerSplit, RefusesEmptyStagesAndTooLargeWeights) {
  EXPECT_EQ(error_of([] { split_layers(2, 5); }),
            "R-PPL: 2 layers on 5 stages: a stage would be empty | nearest: 4 stages");
  EXPECT_EQ(error_of([] { split_layers(8, 4, 4, 0); }),
            "R-PPL: 8 layers on 4 stages: first_less_layers is 4, but a stage has room for 3 | "
            "nearest: first_less_layers = 3");
  EXPECT_THAT(error_of([] { split_layers(8, 4, 0, 5); }), HasSubstr("last_less_layers is 5"));
  EXPECT_THAT(error_of([] { split_layers(8, 4, -1); }), HasSubstr("first_less_layers is -1"));
  EXPECT_THAT(error_of([] { split_layers(8, 0); }), HasSubstr("at least one"));
}

TEST(LayerSplit, KeepsEveryLayerAndIsEvenWithinOne) {
  for (int64_t layers = 1; layers <= 40; ++layers) {
    for (int64_t stages = 1; stages <= layers; ++stages) {
      std::vector<int64_t> split = split_layers(layers, stages);
      int64_t sum = 0;
      for (const int64_t n : split) sum += n;
      EXPECT_EQ(sum, layers);
      split.front() += 1;
      split.back() += 1;
      const auto [least, most] = std::minmax_element(split.begin(), split.end());
      EXPECT_LE(*most - *least, 1) << layers << " layers on " << stages;
    }
  }
}

}  // namespace
}  // namespace assay
