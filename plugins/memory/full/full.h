// full: a layer keeps its input only and runs again in backward.
#pragma once

#include "assay/memory.h"
#include "assay/options.h"

namespace assay::memory {

struct FullOptions {
  static void declare(OptionTable<FullOptions>&) {}
};

/// Activation checkpointing, Chen et al. 2016, arXiv:1604.06174, one segment per layer: 2 T d bytes
/// of bf16 per layer, one layer's whole set while its backward runs, one more forward of each
/// layer. Embedding and head are not wrapped.
class Full final : public MemoryPolicy {
 public:
  using Options = FullOptions;
  explicit Full(const Options&) {}

  Keep block(const BlockSpec& block, int64_t) const override {
    return block.kind == BlockSpec::Kind::layer ? Keep::recompute : Keep::keep;
  }
  std::vector<std::string> engagement() const override { return {"recompute.blocks"}; }
};

}  // namespace assay::memory
