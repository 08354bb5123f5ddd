// Checkpoints: saved on one layout, loaded on any other, bit for bit; and the steps that follow.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

#include "assay/error.h"
#include "core/checkpoint/folder.h"
#include "core/checkpoint/reader.h"
#include "core/checkpoint/safetensors.h"
#include "core/checkpoint/verify.h"
#include "core/train/checkpoint.h"
#include "core/train/checkpointer.h"
#include "core/train/trainer.h"
#include "tests/parity/layouts.h"

namespace assay::parity {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr int64_t kBefore = 3, kAfter = 3;  // steps before the save and after it

struct Layout {
  std::string name{}, mesh{};
  json components = json::object();
};

const std::vector<Layout>& layouts() {
  static const json ddp = {{"name", "ddp"}}, zero1 = {{"name", "zero1"}}, fsdp = {{"name", "fsdp"}},
                    tp = {{"name", "tp"}};
  static const std::vector<Layout> all = {
      {"one", "", json::object()},
      {"ddp2", "dp_replicate=2", {{"dp_replicate", ddp}}},
      {"zero1", "dp_shard=2", {{"dp_shard", zero1}}},
      {"zero2_of_4", "dp_shard=4", {{"dp_shard", {{"name", "zero2"}}}}},
      {"fsdp_of_4", "dp_shard=4", {{"dp_shard", fsdp}}},
      {"hsdp", "dp_replicate=2 dp_shard=2", {{"dp_replicate", ddp}, {"dp_shard", fsdp}}},
      {"tp", "tp=2", {{"tp", tp}}},
      {"fsdp_tp", "dp_shard=2 tp=2", {{"dp_shard", fsdp}, {"tp", tp}}},
      {"pp", "pp=2", {{"pp", {{"name", "pp"}, {"schedule", "1f1b"}}}}},
  };
  return all;
}

json config_of(const Layout& layout_, json config = base_config()) {
  return layout(layout_.mesh, layout_.components, std::move(config));
}

/// A folder of this process, removed at its end.
fs::path scratch(const std::string& name) {
  struct Root {
    fs::path path =
        fs::temp_directory_path() / ("assay-parity-checkpoint-" + std::to_string(getpid()));
    ~Root() { fs::remove_all(path); }
  };
  static const Root root;
  fs::create_directories(root.path / name);
  return root.path / name;
}

void save(train::Trainer& trainer, const fs::path& folder, int64_t steps, const json& config,
          bool async = false) {
  train::Checkpointer checkpointer(trainer.assembly(),
                                   {.every = 1, .async = async, .folder = folder}, config);
  checkpointer.save(steps);
  checkpointer.finish();
}

/// Losses of the steps after `first`, and what rank 0 evaluates at the end.
std::vector<double> go_on(train::Trainer& trainer, int64_t first) {
  std::vector<double> losses;
  for (int64_t i = 0; i < kAfter; ++i) losses.push_back(trainer.step(first + i).loss);
  losses.push_back(trainer.evaluate(1).loss);
  return losses;
}

struct SavedRun {
  fs::path checkpoint{};
  std::vector<double> losses{};  ///< that followed in the run that saved
};

SavedRun train_and_save(const Layout& l, const json& config) {
  SavedRun saved{.checkpoint = scratch(l.name)};
  std::mutex mutex;
  on_ranks(config, [&](train::Trainer& trainer) {
    for (int64_t i = 0; i < kBefore; ++i) trainer.step(i);
    save(trainer, saved.checkpoint, kBefore, config);
    const auto losses = go_on(trainer, kBefore);
    const std::lock_guard lock(mutex);
    saved.losses = losses;
  });
  saved.checkpoint = checkpoint::find_checkpoint(saved.checkpoint);
  return saved;
}

const SavedRun& saved_on(const Layout& l) {
  static std::map<std::string, SavedRun> runs;
  const auto found = runs.find(l.name);
  if (found != runs.end()) return found->second;
  return runs[l.name] = train_and_save(l, config_of(l));
}

std::vector<std::byte> whole_tensor(checkpoint::Reader& reader, const std::string& name) {
  const auto& tensor = reader.manifest().tensors.at(name);
  const auto all = checkpoint::whole(tensor.shape);
  std::vector<std::byte> bytes(static_cast<size_t>(checkpoint::volume(all)) *
                               checkpoint::element_bytes(tensor.dtype));
  reader.read(name, all, bytes.data());
  return bytes;
}

/// Names of the tensors whose bits differ, or that only one of them has.
std::vector<std::string> different(const fs::path& a, const fs::path& b) {
  checkpoint::Reader first(a), second(b);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : first.manifest().tensors) {
    if (!second.manifest().tensors.contains(name)) names.push_back(name);
  }
  for (const auto& [name, tensor] : second.manifest().tensors) {
    if (!first.manifest().tensors.contains(name) ||
        whole_tensor(first, name) != whole_tensor(second, name)) {
      names.push_back(name);
    }
  }
  return names;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    worst = std::max(worst, std::abs(a[i] - b[i]) / std::abs(b[i]));
  }
  return worst;
}

/// Loads a checkpoint on a layout, saves at once, goes on.
SavedRun load_and_go_on(const json& config, const fs::path& checkpoint, const fs::path& again) {
  SavedRun run;
  std::mutex mutex;
  on_ranks(config, [&](train::Trainer& trainer) {
    const int64_t first = train::load_checkpoint(trainer.assembly(), checkpoint);
    save(trainer, again, first, config);
    const auto losses = go_on(trainer, first);
    const std::lock_guard lock(mutex);
    run.losses = losses;
  });
  run.checkpoint = checkpoint::find_checkpoint(again);
  return run;
}

std::string refusal(const json& config, const fs::path& checkpoint) {
  std::atomic<int> thrown = 0;
  std::mutex mutex;
  std::string text = "accepted";
  int64_t world = 0;
  on_ranks(config, [&](train::Trainer& trainer) {
    try {
      train::load_checkpoint(trainer.assembly(), checkpoint);
    } catch (const Error& error) {
      ++thrown;
      const std::lock_guard lock(mutex);
      world = trainer.assembly().mesh.world();
      const std::string what = error.what();
      if (what.find("another rank") == what.npos) text = what;
    }
  });
  EXPECT_EQ(thrown, world) << "all ranks refuse, or none";
  return text;
}

// ---- any layout to any layout ----

using Pair = std::tuple<size_t, size_t>;

class Elastic : public testing::TestWithParam<Pair> {};

TEST_P(Elastic, TensorsAreEqualInBitsAndTrainingGoesOn) {
  const Layout& from = layouts()[std::get<0>(GetParam())];
  const Layout& to = layouts()[std::get<1>(GetParam())];
  const SavedRun& saved = saved_on(from);
  const SavedRun loaded =
      load_and_go_on(config_of(to), saved.checkpoint, scratch(from.name + "_to_" + to.name));
  EXPECT_EQ(different(saved.checkpoint, loaded.checkpoint), std::vector<std::string>{});
  if (from.name == to.name) {
    EXPECT_EQ(loaded.losses, saved.losses) << "3 + save + load + 3 steps are 6 steps, in bits";
  } else {
    EXPECT_LE(largest_difference(loaded.losses, saved.losses), 1e-10);
  }
}

INSTANTIATE_TEST_SUITE_P(Pairs, Elastic,
                         testing::Combine(testing::Range(size_t{0}, layouts().size()),
                                          testing::Range(size_t{0}, layouts().size())),
                         [](const auto& info) {
                           return layouts()[std::get<0>(info.param)].name + "_to_" +
                                  layouts()[std::get<1>(info.param)].name;
                         });

// ---- what is in a checkpoint ----

TEST(Checkpoint, HoldsEveryElementOnceHoweverManyRanksHaveIt) {
  for (const Layout& l : layouts()) {
    EXPECT_TRUE(checkpoint::find_damage(saved_on(l).checkpoint).empty()) << l.name;
  }
}

TEST(Checkpoint, ReplicasWriteNothing) {
  const fs::path ddp = saved_on(layouts()[1]).checkpoint;
  EXPECT_FALSE(checkpoint::read_header(ddp / "rank-00000.safetensors").empty());
  EXPECT_TRUE(checkpoint::read_header(ddp / "rank-00001.safetensors").empty());
}

TEST(Checkpoint, TakesTheBytesOfWeightsAndMoments) {
  int64_t elements = 0;
  on_ranks(base_config(), [&](train::Trainer& trainer) {
    for (const Parameter& p : trainer.assembly().parameters) elements += p.master.numel();
  });
  for (const Layout& l : layouts()) {
    EXPECT_EQ(checkpoint::read_manifest(saved_on(l).checkpoint).bytes(), 3 * 8 * elements)
        << l.name << ": weight, m and v in fp64";
  }
}

TEST(Checkpoint, SaysWhereTheRunStands) {
  const auto m = checkpoint::read_manifest(saved_on(layouts()[7]).checkpoint);
  EXPECT_EQ(m.step, kBefore);
  EXPECT_EQ(m.data.next_sample, kBefore * 8);
  EXPECT_EQ(m.seed, 1u);
  EXPECT_EQ(m.world, 4);
  EXPECT_EQ(m.config, config_of(layouts()[7]));
}

// Uneven cuts at every dimension that is cut, a tied embedding, another optimizer.
TEST(Checkpoint, UnevenShardsAndATiedEmbeddingMove) {
  json config = base_config();
  config["data"]["vocab_size"] = 43;
  config["model"]["tied"] = "true";
  config["model"]["ffn"] = 50;
  config["optim"] = {{"name", "lion"}, {"lr", 1e-3}};
  const Layout from{"uneven", "dp_shard=2 tp=2", layouts()[7].components};
  const SavedRun saved = train_and_save(from, config_of(from, config));
  const SavedRun four = load_and_go_on(config_of(layouts()[3], config), saved.checkpoint,
                                       scratch("uneven_to_zero2_of_4"));
  EXPECT_EQ(different(saved.checkpoint, four.checkpoint), std::vector<std::string>{});
  EXPECT_LE(largest_difference(four.losses, saved.losses), 1e-8) << "lion takes signs";
}

// Experts are cut by ep, and the router's bias is kept by the model.
TEST(Checkpoint, ExpertsAndTheBiasOfTheirRouterMove) {
  json config = base_config();
  config["model"].update(
      {{"name", "moe"}, {"experts", 8}, {"expert_ffn", 20}, {"bias_rate", 0.01}});
  const json components = {{"dp_shard", {{"name", "fsdp"}}}, {"ep", {{"name", "ep"}}}};
  const Layout from{"experts", "dp_shard=4 ep=2", components};
  const SavedRun saved = train_and_save(from, config_of(from, config));
  const auto& tensors = checkpoint::read_manifest(saved.checkpoint).tensors;
  EXPECT_EQ(
      std::ranges::count_if(
          tensors, [](const auto& t) { return t.second.kind == checkpoint::TensorKind::kept; }),
      4)
      << "a bias in each layer";
  const std::vector<Layout> targets = {
      {"one_from_experts", "", json::object()},
      {"pp_from_experts", "pp=2", {{"pp", {{"name", "pp"}, {"schedule", "1f1b"}}}}},
      {"ep4_from_experts", "dp_shard=4 ep=4", components}};
  for (const Layout& to : targets) {
    const SavedRun moved =
        load_and_go_on(config_of(to, config), saved.checkpoint, scratch(to.name));
    EXPECT_EQ(different(saved.checkpoint, moved.checkpoint), std::vector<std::string>{}) << to.name;
    EXPECT_LE(largest_difference(moved.losses, saved.losses), 1e-10) << to.name;
  }
}

TEST(Checkpoint, MastersOfBf16MoveAndTheWeightsFollow) {
  json config = base_config();
  config["precision"] = {{"name", "bf16"}};
  const SavedRun saved = train_and_save({"bf16", "", {}}, config);
  const SavedRun same = load_and_go_on(config, saved.checkpoint, scratch("bf16_again"));
  EXPECT_EQ(different(saved.checkpoint, same.checkpoint), std::vector<std::string>{});
  EXPECT_EQ(same.losses, saved.losses);
  EXPECT_EQ(checkpoint::read_manifest(saved.checkpoint).tensors.at("lm_head.weight").dtype, "F32");
}

// ---- in the background ----

TEST(Checkpoint, InTheBackgroundItHoldsTheStepAtWhichItWasAskedFor) {
  const Layout& l = layouts()[7];
  const json config = config_of(l);
  const fs::path folder = scratch("async");
  std::mutex mutex;
  std::vector<double> losses;
  on_ranks(config, [&](train::Trainer& trainer) {
    train::Checkpointer checkpointer(trainer.assembly(),
                                     {.every = 1, .async = true, .folder = folder}, config);
    for (int64_t i = 0; i < kBefore; ++i) trainer.step(i);
    EXPECT_FALSE(checkpointer.save(kBefore).has_value());
    const auto after = go_on(trainer, kBefore);  // weights change while the file is written
    const auto first = checkpointer.save(kBefore + kAfter);
    ASSERT_TRUE(first.has_value()) << "a new save waits for the one before it";
    EXPECT_EQ(first->step, kBefore);
    const auto second = checkpointer.finish();
    ASSERT_TRUE(second.has_value());
    EXPECT_EQ(second->step, kBefore + kAfter);
    EXPECT_GT(second->bytes, 0);
    const std::lock_guard lock(mutex);
    losses = after;
  });
  const SavedRun& plain = saved_on(l);
  EXPECT_EQ(losses, plain.losses) << "saving changes no number";
  EXPECT_EQ(different(plain.checkpoint, folder / checkpoint::step_name(kBefore)),
            std::vector<std::string>{});
  EXPECT_EQ(checkpoint::saved_steps(folder).size(), 2u);
}

TEST(Checkpoint, OldOnesGoButNeverTheLastGoodOne) {
  const json config = base_config();
  const fs::path folder = scratch("keep");
  on_ranks(config, [&](train::Trainer& trainer) {
    train::Checkpointer checkpointer(trainer.assembly(), {.every = 2, .keep = 2, .folder = folder},
                                     config);
    std::vector<int64_t> saved;
    for (int64_t step = 1; step <= 7; ++step) {
      if (!checkpointer.is_due(step, 7)) continue;
      checkpointer.save(step);
      saved.push_back(step);
    }
    EXPECT_EQ(saved, (std::vector<int64_t>{2, 4, 6, 7})) << "the last step is saved too";
  });
  const auto kept = checkpoint::saved_steps(folder);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].step, 6);
  EXPECT_EQ(kept[1].step, 7);
  EXPECT_THROW(train::checkpoint_settings({{"keep", 1}}, folder), Error);
  EXPECT_EQ(train::checkpoint_settings({{"keep", 0}}, folder).keep, 0);
}

// ---- refusals ----

void expect_lines(const std::string& text, const std::vector<std::string>& lines) {
  EXPECT_NE(text.find("[R-CKPT]"), std::string::npos) << text;
  for (const std::string& line : lines) {
    EXPECT_NE(text.find(line), std::string::npos) << "missing '" << line << "' in " << text;
  }
}

TEST(CheckpointRefuses, AnotherModelNamingEveryTensor) {
  json config = base_config();
  config["model"]["layers"] = 5;
  config["model"]["ffn"] = 56;
  expect_lines(
      refusal(config, saved_on(layouts()[0]).checkpoint),
      {"missing      model.layers.4.mlp.up_proj.weight [56, 32]",
       "missing      optim/v/model.layers.4.mlp.up_proj.weight [56, 32]",
       "misshapen    model.layers.0.mlp.up_proj.weight: checkpoint [52, 32], run [56, 32]"});
  config = base_config();
  config["model"]["layers"] = 3;
  expect_lines(refusal(config, saved_on(layouts()[0]).checkpoint),
               {"extra        model.layers.3.mlp.up_proj.weight"});
}

TEST(CheckpointRefuses, AnotherVocabularyInAWord) {
  json config = config_of(layouts()[7]);
  config["data"]["vocab_size"] = 39;
  expect_lines(refusal(config, saved_on(layouts()[0]).checkpoint),
               {"vocabulary   checkpoint 37, run 39", "misshapen    lm_head.weight"});
}

TEST(CheckpointRefuses, AnotherPrecisionAndOptimizer) {
  json config = base_config();
  config["precision"] = {{"name", "fp32"}};
  config["optim"] = {{"name", "lion"}, {"lr", 1e-3}};
  expect_lines(refusal(config, saved_on(layouts()[0]).checkpoint),
               {"other dtype  lm_head.weight: checkpoint F64, run F32",
                "other dtype  optim/m/lm_head.weight: checkpoint F64, run F32",
                "extra        optim/v/lm_head.weight"});
}

TEST(CheckpointRefuses, AnotherOrderOfTheData) {
  json config = base_config();
  config["seed"] = 2;
  config["train"]["global_batch"] = 4;
  config["model"]["seq_len"] = 8;
  config["data"]["branches"] = 3;
  expect_lines(refusal(config, saved_on(layouts()[0]).checkpoint),
               {"seed         checkpoint 1, run 2", "global_batch checkpoint 8, run 4",
                "seq_len      checkpoint 16, run 8", "data         checkpoint "});
}

TEST(CheckpointRefuses, AFlippedByteOnEveryRankThoughOneReadsIt) {
  const Layout& zero1 = layouts()[2];
  const fs::path copy = scratch("flipped") / "step-00000003";
  fs::copy(saved_on(zero1).checkpoint, copy, fs::copy_options::recursive);
  const checkpoint::Manifest manifest = checkpoint::read_manifest(copy);
  const checkpoint::Chunk chunk = manifest.tensors.at("optim/m/lm_head.weight").chunks.at(1);
  {
    std::fstream file(copy / chunk.file, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(chunk.offset) + 11);
    file.put('x');
  }
  expect_lines(refusal(config_of(zero1), copy),
               {"rank-00001.safetensors: 'optim/m/lm_head.weight', chunk [19:37, 0:32]: bytes "});
}

}  // namespace
}  // namespace assay::parity
