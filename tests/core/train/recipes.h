// Small recipes for tests of the training core, made through the real plugins.
#pragma once

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "assay/registry.h"
#include "core/sdk/loader.h"
#include "core/train/trainer.h"

namespace assay::train {

/// Loads the plugins that the tests use, once per process.
inline void load_test_plugins() {
  static const bool loaded = [] {
    const std::string folder = ASSAY_PLUGIN_DIR;
    std::vector<std::filesystem::path> files;
    for (const char* name : {"llama3", "moe", "data_synthetic", "adamw", "precision_fp32",
                             "precision_fp64", "precision_bf16", "memory_none", "memory_full",
                             "memory_selective_layer", "memory_selective_op", "compile_eager"}) {
      files.push_back(folder + "/" + name + ".assay.so");
    }
    at::set_num_threads(1);  // bits of full sums depend on the thread count
    load_plugins(files);
    return true;
  }();
  (void)loaded;
}

/// A resolved configuration of a two-layer model on synthetic ids; tests overwrite what they vary.
inline nlohmann::json small_config() {
  return {{"model",
           {{"name", "llama3"},
            {"flavour", "tiny"},
            {"layers", 2},
            {"hidden", 64},
            {"heads", 4},
            {"kv_heads", 2},
            {"ffn", 96},
            {"seq_len", 16}}},
          {"data", {{"name", "synthetic"}}},
          {"mesh", nlohmann::json::object()},
          {"parallel", nlohmann::json::object()},
          {"memory", {{"name", "none"}}},
          {"precision", {{"name", "fp64"}}},
          {"optim", {{"name", "adamw"}, {"lr", 1e-2}}},
          {"compile", {{"name", "eager"}}},
          {"comm", {{"name", "shm"}}},
          {"train",
           {{"steps", 5},
            {"global_batch", 4},
            {"micro_batch", 2},
            {"max_norm", 1.0},
            {"warmup", 0},
            {"schedule", "constant"},
            {"eval_batches", 1}}},
          {"seed", 1}};
}

inline std::unique_ptr<Trainer> make_trainer(const nlohmann::json& config) {
  load_test_plugins();
  return std::make_unique<Trainer>(assemble(make_recipe(config), 0, {}, at::kCPU));
}

/// Loss and gradient norm of each step.
inline std::vector<std::pair<double, double>> run_steps(Trainer& trainer, int64_t steps) {
  std::vector<std::pair<double, double>> result;
  for (int64_t i = 0; i < steps; ++i) {
    const StepResult step = trainer.step(i);
    result.emplace_back(step.loss, step.grad_norm);
  }
  return result;
}

/// Largest relative difference of two runs' weights; 0 where all bits are equal.
inline double weight_difference(Trainer& a, Trainer& b) {
  double worst = 0;
  for (size_t i = 0; i < a.assembly().shards.size(); ++i) {
    const Tensor& x = a.assembly().shards[i].master;
    const Tensor& y = b.assembly().shards[i].master;
    if (x.equal(y)) continue;
    worst = std::max(worst, (x.sub(y).norm() / y.norm()).item<double>());
  }
  return worst;
}

}  // namespace assay::train
