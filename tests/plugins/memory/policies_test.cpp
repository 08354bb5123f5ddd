// Decisions of the memory policies over the blocks and linear weights of a llama3.
#include <gtest/gtest.h>

#include "assay/error.h"
#include "full.h"
#include "llama3.h"
#include "none.h"
#include "selective_layer.h"
#include "selective_op.h"

namespace assay::memory {
namespace {

std::vector<BlockSpec> blocks() {
  models::Llama3 model(models::Llama3Options{});  // tiny: 4 layers
  model.bind({272});
  return model.blocks();
}

/// Names of the recomputed blocks.
std::vector<std::string> recomputed(const MemoryPolicy& policy) {
  std::vector<std::string> names;
  for (const BlockSpec& block : blocks()) {
    if (policy.block(block, 4) == Keep::recompute) names.push_back(block.name);
  }
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST(Memory, NoneKeepsEveryBlock) {
  EXPECT_EQ(recomputed(None({})), Names{});
  EXPECT_TRUE(None({}).engagement().empty());
}

TEST(Memory, FullRecomputesTheLayersOnly) {
  EXPECT_EQ(recomputed(Full({})), (Names{"layers.0", "layers.1", "layers.2", "layers.3"}));
  EXPECT_FALSE(Full({}).selective());
}

TEST(Memory, SelectiveLayerRecomputesEveryNth) {
  EXPECT_EQ(recomputed(SelectiveLayer({})), (Names{"layers.0", "layers.2"}));
  EXPECT_EQ(recomputed(SelectiveLayer({.every = 3})), (Names{"layers.0", "layers.3"}));
  EXPECT_EQ(recomputed(SelectiveLayer({.every = 1})), recomputed(Full({})));
}

TEST(Memory, SelectiveOpKeepsEverySecondLinearAndCommunication) {
  const SelectiveOp policy({});
  EXPECT_TRUE(policy.selective());
  EXPECT_EQ(recomputed(policy), recomputed(Full({})));
  const Names names = {"wq", "wk", "wv", "wo", "w1", "w3", "w2"};  // the call order of llama3
  Names kept;
  for (size_t i = 0; i < names.size(); ++i) {
    const OpUse use{.op = "assay::linear", .linear_number = static_cast<int64_t>(i)};
    if (policy.op(use) == Keep::keep) kept.push_back(names[i]);
  }
  EXPECT_EQ(kept, (Names{"wq", "wv", "w1", "w2"}));
  for (const char* op : {"assay::attention", "assay::reduce_scatter", "assay::all_to_all"}) {
    EXPECT_EQ(policy.op({.op = op}), Keep::keep) << op;
  }
  for (const char* op :
       {"assay::norm", "assay::rope", "assay::all_gather", "aten::mul", "aten::linear", "linear"}) {
    EXPECT_EQ(policy.op({.op = op}), Keep::recompute) << op;
  }
}

TEST(Memory, SelectiveOpFollowsItsList) {
  const SelectiveOp policy({.save = {"linear"}, .every_second = false});
  EXPECT_EQ(policy.op({.op = "assay::linear", .linear_number = 1}), Keep::keep);
  EXPECT_EQ(policy.op({.op = "assay::attention"}), Keep::recompute);
  try {
    SelectiveOp({.save = {"linear", "abs"}});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[R-ACLIST] no operation 'abs' can be kept");
  }
}

}  // namespace assay::memory
