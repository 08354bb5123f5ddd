// selective_layer: every n-th layer is recomputed, the others are kept.
#pragma once

#include "assay/memory.h"
#include "assay/options.h"

namespace assay::memory {

struct SelectiveLayerOptions {
  int64_t every = 2;

  static void declare(OptionTable<SelectiveLayerOptions>& t) {
    t.add(&SelectiveLayerOptions::every, "every", Affects::memory, {1, 4096},
          "layers 0, every, 2 every, ... are recomputed; 1: all");
  }
};

/// Activation checkpointing (memory/full) of the layers whose index is a multiple of `every`:
/// bytes and work between none and full, in steps of one layer.
class SelectiveLayer final : public MemoryPolicy {
 public:
  using Options = SelectiveLayerOptions;
  explicit SelectiveLayer(const Options& options) : options_(options) {}

  Keep block(const BlockSpec& block, int64_t) const override {
    const bool layer = block.kind == BlockSpec::Kind::layer;
    return layer && block.layer % options_.every == 0 ? Keep::recompute : Keep::keep;
  }
  std::vector<std::string> engagement() const override { return {"recompute.blocks"}; }

 private:
  const Options options_;
};

}  // namespace assay::memory
