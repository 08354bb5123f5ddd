// Saved-activation bytes of a rank under every strategy are those of the closed forms (recipes 2.6,
// 2.9, 2.10, 3.1), exactly; pipelines hold them once for each live chunk.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/schedule/closed_form.h"
#include "core/train/trainer.h"
#include "layouts.h"

namespace assay::parity::activation_memory {
namespace {

using nlohmann::json;

constexpr int64_t kBytes = 8;  // fp64: activations and statistics alike
constexpr int64_t kTokens = 16, kHidden = 32, kKv = 16, kFfn = 52, kHeads = 4;

/// What one layer keeps of `tokens` tokens: x, n1, q, o, h, n2; k, v; gate, up, silu, product; two
/// rstd and the lse.
constexpr int64_t layer(int64_t tokens) {
  return kBytes * tokens * (6 * kHidden + 2 * kKv + 4 * kFfn + 2 + kHeads);
}

/// The same where tensor parallelism cuts heads and ffn, but not the sequence.
constexpr int64_t plain_tp(int64_t tokens, int64_t tp) {
  return kBytes * tokens * (4 * kHidden + 2 + (2 * kHidden + 2 * kKv + 4 * kFfn + kHeads) / tp);
}

struct Measured {
  int64_t bytes = 0;        ///< saved in one microbatch, by all chunks of the rank
  int64_t live_chunks = 0;  ///< at most at once; 0 without a pipeline
};

std::vector<Measured> measure(json config, int64_t layers) {
  config["model"]["layers"] = layers;
  std::vector<Measured> ranks(16);
  on_ranks(config, [&](train::Trainer& trainer) {
    const auto rank = static_cast<size_t>(trainer.assembly().mesh.rank());
    ranks.at(rank).bytes = trainer.step(0, /*measure_activations=*/true).saved_activation_bytes;
    ranks[rank].live_chunks = trainer.assembly().counters["pipeline.peak_live_chunks"];
  });
  std::erase_if(ranks, [](const Measured& m) { return m.bytes == 0; });
  return ranks;
}

/// By rank: what `more` further layers save; embedding, norm and head drop out.
std::vector<int64_t> of_layers(const json& config, int64_t fewer, int64_t more) {
  const std::vector<Measured> small = measure(config, fewer), large = measure(config, fewer + more);
  std::vector<int64_t> bytes;
  for (size_t i = 0; i < large.size(); ++i) bytes.push_back(large[i].bytes - small.at(i).bytes);
  return bytes;
}

struct Case {
  const char* mesh;
  json components;
  int64_t per_layer;
  std::string memory = "none";
};

void expect_per_layer(const Case& c) {
  SCOPED_TRACE(c.mesh + c.components.dump() + c.memory);
  json config = layout(c.mesh, c.components);
  config["memory"] = {{"name", c.memory}};
  for (const int64_t bytes : of_layers(config, 2, 2)) EXPECT_EQ(bytes, 2 * c.per_layer);
}

const json kDdp = {{"name", "ddp"}}, kFsdp = {{"name", "fsdp"}};
const json kTp = {{"name", "tp"}}, kPlainTp = {{"name", "tp"}, {"sp", false}},
           kRegather = {{"name", "tp"}, {"regather", true}},
           kKept = {{"name", "tp"}, {"regather", false}};
json cp(const char* method) { return {{"name", "cp"}, {"method", method}}; }

TEST(ActivationMemory, ShardingOfParametersKeepsWhatOneRankKeeps) {
  for (const Case& c : {
           Case{"dp_replicate=1", json::object(), layer(kTokens)},
           {"dp_replicate=2", {{"dp_replicate", kDdp}}, layer(kTokens)},
           {"dp_shard=2", {{"dp_shard", {{"name", "zero1"}}}}, layer(kTokens)},
           {"dp_shard=2", {{"dp_shard", {{"name", "zero2"}}}}, layer(kTokens)},
           {"dp_shard=4", {{"dp_shard", kFsdp}}, layer(kTokens)},
           {"dp_shard=2", {{"dp_shard", {{"name", "fsdp"}, {"reshard", "never"}}}}, layer(kTokens)},
           {"dp_replicate=2 dp_shard=2",
            {{"dp_replicate", kDdp}, {"dp_shard", kFsdp}},
            layer(kTokens)},
       }) {
    expect_per_layer(c);
  }
}

/// The gathered inputs of wq, wk, wv and of w1, w3, where they are kept and not gathered again.
constexpr int64_t kGathered = 2 * kBytes * kTokens * kHidden / 2;

TEST(ActivationMemory, TensorParallelismCutsHeadsAndSequenceParallelismTheRest) {
  const json async = {{"name", "async_tp"}};
  for (const Case& c : {
           Case{"tp=2", {{"tp", kPlainTp}}, plain_tp(kTokens, 2)},
           {"tp=2", {{"tp", kRegather}}, layer(kTokens) / 2},
           {"tp=2", {{"tp", kKept}}, layer(kTokens) / 2 + kGathered},
           {"tp=2", {{"tp", async}}, layer(kTokens) / 2},
           {"dp_shard=2 tp=2", {{"dp_shard", kFsdp}, {"tp", kRegather}}, layer(kTokens) / 2},
           {"dp_shard=2 tp=2", {{"dp_shard", kFsdp}, {"tp", kPlainTp}}, plain_tp(kTokens, 2)},
       }) {
    expect_per_layer(c);
  }
}

TEST(ActivationMemory, ContextParallelismCutsTheTokens) {
  constexpr int64_t kLocal = kTokens / 2;
  constexpr int64_t kOthersKv = 2 * kBytes * kKv * (kTokens - kLocal);  // all_gather keeps them
  for (const Case& c : {
           Case{"cp=2", {{"cp", cp("ring")}, {"dp_shard", kFsdp}}, layer(kLocal)},
           {"cp=2", {{"cp", cp("all_gather")}, {"dp_shard", kFsdp}}, layer(kLocal) + kOthersKv},
           {"cp=2 dp_shard=2", {{"cp", cp("ring")}, {"dp_shard", kFsdp}}, layer(kLocal)},
           {"cp=2 tp=2",
            {{"cp", cp("ring")}, {"tp", kRegather}, {"dp_shard", kFsdp}},
            layer(kLocal) / 2},
           {"cp=2 tp=2",
            {{"cp", cp("ring")}, {"tp", kPlainTp}, {"dp_shard", kFsdp}},
            plain_tp(kLocal, 2)},
       }) {
    expect_per_layer(c);
  }
}

TEST(ActivationMemory, FullRecomputeKeepsTheInputOfALayer) {
  constexpr int64_t kInput = kBytes * kTokens * kHidden;
  for (const Case& c : {
           Case{"dp_shard=2", {{"dp_shard", kFsdp}}, kInput, "full"},
           {"tp=2", {{"tp", kPlainTp}}, kInput, "full"},
           {"tp=2", {{"tp", kTp}}, kInput / 2, "full"},
           {"cp=2 tp=2",
            {{"cp", cp("ring")}, {"tp", kTp}, {"dp_shard", kFsdp}},
            kInput / 4,
            "full"},
       }) {
    expect_per_layer(c);
  }
}

struct Schedule {
  const char* name;
  int64_t chunks;
};

/// 4 more layers on 2 ranks of `chunks` chunks are 2 / chunks more in each.
TEST(ActivationMemory, PipelinesHoldTheBytesOfTheirLiveChunks) {
  for (const Schedule& s : {Schedule{"gpipe", 1},
                            {"1f1b", 1},
                            {"interleaved_1f1b", 2},
                            {"looped_bfs", 2},
                            {"interleaved_zb", 1},
                            {"interleaved_zb", 2},
                            {"zbv", 2}}) {
    SCOPED_TRACE(s.name + (" v " + std::to_string(s.chunks)));
    const json pp = {{"name", "pp"},
                     {"schedule", s.name},
                     {"v", s.chunks},
                     {"first_less_layers", 0},
                     {"last_less_layers", 0}};
    const json config = layout("pp=2", {{"pp", pp}});
    const std::vector<int64_t> bytes = of_layers(config, 4, 4);
    const std::vector<Measured> ranks = measure(config, 8);
    const ClosedForm closed = closed_form(pipeline_schedule(s.name),
                                          {.ranks = 2, .chunks = s.chunks, .microbatches = 8}, {});
    for (size_t r = 0; r < 2; ++r) {
      EXPECT_EQ(bytes[r], 2 * layer(kTokens));
      EXPECT_EQ(ranks[r].live_chunks * bytes[r] / s.chunks,
                closed.peak_chunks.at(r) * 2 * layer(kTokens) / s.chunks);
    }
  }
}

TEST(ActivationMemory, PipelinesComposeWithWhatCutsTheirLayers) {
  const json pp = {
      {"name", "pp"}, {"schedule", "1f1b"}, {"first_less_layers", 0}, {"last_less_layers", 0}};
  for (const Case& c : {
           Case{"pp=2 dp_shard=2", {{"pp", pp}, {"dp_shard", kFsdp}}, layer(kTokens)},
           {"pp=2 tp=2", {{"pp", pp}, {"tp", kRegather}}, layer(kTokens) / 2},
           {"pp=2 tp=2", {{"pp", pp}, {"tp", kPlainTp}}, plain_tp(kTokens, 2)},
           {"pp=2 cp=2", {{"pp", pp}, {"cp", cp("ring")}, {"dp_shard", kFsdp}}, layer(kTokens / 2)},
       }) {
    SCOPED_TRACE(c.mesh + c.components.dump());
    for (const int64_t bytes : of_layers(layout(c.mesh, c.components), 4, 4)) {
      EXPECT_EQ(bytes, 2 * c.per_layer);
    }
  }
}

}  // namespace
}  // namespace assay::parity::activation_memory
