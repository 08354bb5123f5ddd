// What a checkpoint holds beside weights of the usual shape, and runs that resume from one.
#include "core/train/checkpoint.h"

#include <ATen/ops/full.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "core/checkpoint/folder.h"
#include "core/checkpoint/verify.h"
#include "core/train/checkpointer.h"
#include "core/train/run.h"
#include "recipes.h"

namespace assay::train {
namespace {

namespace fs = std::filesystem;

class CheckpointFiles : public testing::Test {
 protected:
  CheckpointFiles() : folder_(testing::TempDir() + "assay-train-" + std::to_string(getpid())) {
    fs::create_directories(folder_);
  }
  ~CheckpointFiles() override { fs::remove_all(folder_); }
  const fs::path folder_;
};

/// Counts its updates in a scalar, and keeps a square of the first dimension and a moment.
class CountingOptimizer final : public Optimizer {
 public:
  std::vector<StateSlot> state_spec(const ParameterInfo& p) const override {
    std::vector<StateSlot> slots = {{.name = "count", .shape = {SlotShape::scalar}},
                                    {.name = "m", .dtype = p.dtype}};
    if (p.shape.size() == 2) slots.push_back({.name = "g", .shape = {SlotShape::square, 1}});
    return slots;
  }
  void step(std::span<ParameterShard> shards, const StepContext& context) override {
    for (ParameterShard& p : shards) {
      p.state[0].add_(1);
      p.state[1].mul_(0.5).add_(p.grad);
      if (p.state.size() > 2) p.state[2].add_(p.grad.t().matmul(p.grad).to(at::kFloat));
      p.master.sub_(p.state[1], context.lr);
    }
  }
};

std::unique_ptr<Trainer> counting_trainer(int64_t seed = 1) {
  load_test_plugins();
  auto config = small_config();
  config["seed"] = seed;
  Recipe recipe = make_recipe(config);
  recipe.optimizer = std::make_unique<CountingOptimizer>();
  return std::make_unique<Trainer>(assemble(std::move(recipe), 0, {}, at::kCPU));
}

void save_now(Trainer& trainer, const fs::path& folder, int64_t steps) {
  Checkpointer checkpointer(trainer.assembly(), {.every = 1, .folder = folder}, small_config());
  checkpointer.save(steps);
}

TEST_F(CheckpointFiles, ScalarAndSquareSlotsComeBack) {
  auto trained = counting_trainer();
  run_steps(*trained, 2);
  save_now(*trained, folder_, 2);
  auto loaded = counting_trainer();
  EXPECT_EQ(load_checkpoint(loaded->assembly(), checkpoint::find_checkpoint(folder_)), 2);
  EXPECT_EQ(weight_difference(*loaded, *trained), 0.0);
  for (size_t i = 0; i < trained->assembly().shards.size(); ++i) {
    const ParameterShard& a = trained->assembly().shards[i];
    const ParameterShard& b = loaded->assembly().shards[i];
    for (size_t s = 0; s < a.state.size(); ++s) {
      EXPECT_TRUE(a.state[s].equal(b.state[s])) << a.name << " slot " << s;
    }
    EXPECT_EQ(b.state[0].item<float>(), 2.0f);
  }
  const auto manifest = checkpoint::read_manifest(checkpoint::find_checkpoint(folder_));
  EXPECT_EQ(manifest.tensors.at("optim/count/lm_head.weight").shape, Shape{});
  EXPECT_EQ(manifest.tensors.at("optim/g/lm_head.weight").shape, (Shape{64, 64}));
  EXPECT_EQ(manifest.tensors.at("optim/g/lm_head.weight").dtype, "F32");
}

TEST_F(CheckpointFiles, WhatComponentsKeepComesBack) {
  auto trained = make_trainer(small_config());
  const auto keep = [](Trainer& trainer, double value) {
    KeptTensor kept{.name = "moe/bias/router", .shape = {6}, .box = {{0}, {6}}};
    kept.tensor = at::full({6}, value);
    trainer.assembly().kept.push_back(kept);
    return kept.tensor;
  };
  keep(*trained, 3);
  save_now(*trained, folder_, 1);
  auto loaded = make_trainer(small_config());
  EXPECT_THROW(load_checkpoint(loaded->assembly(), checkpoint::find_checkpoint(folder_)), Error)
      << "a component that this run lacks has kept something";
  const Tensor bias = keep(*loaded, 0);
  load_checkpoint(loaded->assembly(), checkpoint::find_checkpoint(folder_));
  EXPECT_TRUE(bias.equal(at::full({6}, 3.0)));
}

TEST_F(CheckpointFiles, ASaveThatFailsInTheBackgroundIsToldByTheNext) {
  auto trainer = make_trainer(small_config());
  Checkpointer checkpointer(trainer->assembly(),
                            {.every = 1, .async = true, .folder = folder_ / "c"}, small_config());
  fs::remove_all(folder_ / "c");
  std::ofstream(folder_ / "c") << "a file where the folder was";
  checkpointer.save(1);
  EXPECT_THROW(checkpointer.save(2), InfrastructureError);
}

// ---- whole runs ----

class Rows : public Reporter {
 public:
  void row(const nlohmann::json& spool_row) override { rows.push_back(spool_row); }
  void phase(std::string_view) override {}
  void progress(int64_t, int64_t, double, double, int64_t) override {}

  std::vector<nlohmann::json> steps(const std::string& kind) const {
    std::vector<nlohmann::json> found;
    for (const auto& r : rows) {
      if (r.at("t") != "steps") continue;
      const bool train = r.at("kind") == "warmup" || r.at("kind") == "steady";
      if (kind == "train" ? train : r.at("kind") == kind) found.push_back(r);
    }
    return found;
  }
  std::vector<nlohmann::json> rows;
};

nlohmann::json run_config(int64_t steps) {
  auto config = small_config();
  config["train"]["steps"] = steps;
  config["train"]["schedule"] = "constant";
  config["train"]["warmup"] = 2;
  config["train"]["warmup_steps"] = 1;
  return config;
}

Rows run(nlohmann::json config, const fs::path& folder, const nlohmann::json& resume_from = {}) {
  load_test_plugins();
  Rows rows;
  run_cell({{"config", std::move(config)},
            {"threads", 1},
            {"spool_dir", folder.string()},
            {"resume_from", resume_from}},
           0, rows);
  return rows;
}

TEST_F(CheckpointFiles, TenStepsAreFiveAndFiveInBits) {
  const Rows whole = run(run_config(10), folder_ / "whole");
  auto config = run_config(5);
  config["train"]["checkpoint_every"] = 5;
  run(config, folder_ / "first");
  const Rows second = run(run_config(10), folder_ / "second", (folder_ / "first").string());
  const auto expected = whole.steps("train"), seen = second.steps("train");
  ASSERT_EQ(expected.size(), 10u);
  ASSERT_EQ(seen.size(), 5u);
  for (size_t i = 0; i < seen.size(); ++i) {
    for (const char* column : {"step", "loss_bits", "grad_norm_bits", "lr", "tokens_total"}) {
      EXPECT_EQ(seen[i].at(column), expected[5 + i].at(column)) << column << " of step " << 5 + i;
    }
  }
  EXPECT_EQ(second.steps("eval").back().at("loss_bits"),
            whole.steps("eval").back().at("loss_bits"));
  const auto checksum = [](const Rows& rows) {
    return std::ranges::find(rows.rows, "facts",
                             [](const auto& r) { return r.at("t").template get<std::string>(); })
        ->at("parameter_checksum");
  };
  EXPECT_EQ(checksum(second), checksum(whole));
}

TEST_F(CheckpointFiles, ARunReportsWhatItSaved) {
  for (const bool async : {false, true}) {
    auto config = run_config(5);
    config["train"]["checkpoint_every"] = 2;
    config["train"]["checkpoint_async"] = async;
    const fs::path folder = folder_ / (async ? "async" : "sync");
    const Rows rows = run(config, folder);
    std::vector<int64_t> rows_of;
    for (const auto& r : rows.steps("checkpoint")) {
      rows_of.push_back(r.at("step"));
      EXPECT_GT(r.at("wall_s").get<double>(), 0.0);
    }
    EXPECT_EQ(rows_of, (std::vector<int64_t>{1, 3, 4}));
    std::vector<int64_t> written;
    for (const auto& r : rows.rows) {
      if (r.at("t") != "samples" || r.at("name") != "checkpoint_bytes") continue;
      written.push_back(r.at("step"));
      const auto saved = checkpoint::find_checkpoint(folder, r.at("step").get<int64_t>() + 1);
      EXPECT_EQ(r.at("value"), checkpoint::read_manifest(saved).bytes());
      EXPECT_TRUE(checkpoint::find_damage(saved).empty());
    }
    EXPECT_EQ(written, rows_of) << "each save is told once, at its own step";
  }
}

TEST_F(CheckpointFiles, NothingIsSavedUnasked) {
  run(run_config(2), folder_);
  EXPECT_FALSE(fs::exists(folder_ / checkpoint::kFolderName));
}

TEST_F(CheckpointFiles, ACheckpointAtTheEndLeavesNothingToTrain) {
  auto config = run_config(3);
  config["train"]["checkpoint_every"] = 3;
  run(config, folder_);
  try {
    run(run_config(3), folder_ / "more", folder_.string());
    FAIL() << "it trained";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("nothing is left to train"), std::string::npos);
  }
}

}  // namespace
}  // namespace assay::train
