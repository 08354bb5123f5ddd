// Context parallelism gives the numbers of one rank: every method and balance, documents, and what
// it is combined with; its bytes are the closed forms, exactly (recipes 2.10).
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "layouts.h"

namespace assay::parity {
namespace {

using nlohmann::json;

/// Short documents of random letters, several per row of 16 tokens; assay's cache beside them.
class Corpus {
 public:
  Corpus() {
    std::string pattern = (std::filesystem::temp_directory_path() / "assay_cp_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    ::setenv("ASSAY_CACHE_DIR", (folder_ / "cache").c_str(), 1);
    std::ofstream out(folder_ / "corpus.txt");
    std::mt19937 random(3);
    for (int document = 0; document < 400; ++document) {
      const auto length = 1 + random() % 9;
      for (size_t i = 0; i < length; ++i) out << static_cast<char>('a' + random() % 26);
      out << "\n";
    }
  }
  ~Corpus() {
    ::unsetenv("ASSAY_CACHE_DIR");
    std::filesystem::remove_all(folder_);
  }
  std::string path() const { return (folder_ / "corpus.txt").string(); }

 private:
  std::filesystem::path folder_;
};

/// What one rank computes as well: the model and the data.
json setting(const std::string& name) {
  static const Corpus corpus;
  const json text = {
      {"name", "text"}, {"path", corpus.path()}, {"separator", "\n"}, {"validation", 0.1}};
  json packed = text;
  packed["packing"] = "first_fit";
  const json heads = {{"heads", 8}, {"kv_heads", 4}}, document = {{"mask", "document"}};
  const json rows_of_two = {{"micro_batch", 2}};  // several rows in a batch, cut differently
  if (name == "more_heads") return {{"model", heads}};
  if (name == "documents") return {{"model", document}, {"data", text}, {"train", rows_of_two}};
  if (name == "packed") return {{"model", document}, {"data", packed}, {"train", rows_of_two}};
  if (name == "rows") return {{"train", rows_of_two}};
  return json::object();
}

json config_of(const std::string& mesh, json components, const std::string& name,
               const std::string& memory = "none") {
  json base = base_config();
  const json changes = setting(name);
  if (changes.contains("data")) base["data"] = json::object();
  base.merge_patch(changes);
  base["memory"] = {{"name", memory}};
  return layout(mesh, std::move(components), base);
}

const RankOutcome& one_rank(const std::string& name) {
  static std::map<std::string, RankOutcome> outcomes;
  if (!outcomes.contains(name)) {
    outcomes[name] = run(config_of("", json::object(), name)).front();
  }
  return outcomes[name];
}

json cp(const char* method, const char* balance = "headtail") {
  return {{"name", "cp"}, {"method", method}, {"balance", balance}};
}

const json kDdp = {{"name", "ddp"}, {"bucket_mb", 0.01}};
const json kZero1 = {{"name", "zero1"}, {"bucket_mb", 0.01}};
const json kZero2 = {{"name", "zero2"}, {"bucket_mb", 0.01}};
const json kFsdp = {{"name", "fsdp"}, {"unshard", "poison"}};
const json kTp = {{"name", "tp"}};
const json kTpPlain = {{"name", "tp"}, {"sp", false}};

struct Case {
  std::string name{}, mesh{};
  json components{};
  std::string setting{}, memory = "none";
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const char* method : {"all_gather", "ring", "ulysses"}) {
    const std::string name = method;
    const auto add = [&](const std::string& what, const std::string& mesh, json components,
                         const std::string& setting, const std::string& memory = "none") {
      list.push_back({name + "_" + what, mesh, std::move(components), setting, memory});
    };
    for (const char* balance : {"headtail", "none"}) {
      const json of_two = {{"cp", cp(method, balance)}, {"dp_shard", kFsdp}};
      const std::string suffix = balance == std::string("none") ? "_contiguous" : "";
      add("of_2" + suffix, "cp=2", of_two, "rows");
      add("of_4" + suffix, "cp=4", of_two, "more_heads");
      add("documents" + suffix, "cp=2", of_two, "documents");
      add("packed" + suffix, "cp=2", of_two, "packed");
    }
    const json fsdp = {{"cp", cp(method)}, {"dp_shard", kFsdp}};
    json with_tp = fsdp, with_plain_tp = fsdp, with_ddp = fsdp, zero1 = fsdp, zero2 = fsdp;
    with_tp["tp"] = kTp;
    with_plain_tp["tp"] = kTpPlain;
    with_ddp["dp_replicate"] = kDdp;
    zero1["dp_shard"] = kZero1;
    zero2["dp_shard"] = kZero2;
    add("full", "cp=2", fsdp, "documents", "full");
    add("selective", "cp=2", fsdp, "documents", "selective_op");
    add("fsdp_of_2", "dp_shard=2 cp=2", fsdp, "documents");
    add("zero1", "cp=2", zero1, "rows");
    add("zero2", "dp_shard=2 cp=2", zero2, "rows");
    add("hsdp", "dp_replicate=2 cp=2", with_ddp, "rows");
    add("tp", "cp=2 tp=2", with_tp, "more_heads");
    add("tp_without_sp", "cp=2 tp=2", with_plain_tp, "more_heads");
    add("tp_selective", "cp=2 tp=2", with_tp, "more_heads", "selective_op");
    add("fsdp_tp", "dp_shard=2 cp=2 tp=2", with_tp, "more_heads", "full");
    if (name != "ulysses") add("documents_of_4", "cp=4", fsdp, "documents");
  }
  return list;
}

class ContextParallel : public testing::TestWithParam<Case> {};

TEST_P(ContextParallel, GivesTheNumbersOfOneRank) {
  const Case& c = GetParam();
  const Distance d =
      distance(run(config_of(c.mesh, c.components, c.setting, c.memory)), one_rank(c.setting));
  EXPECT_LE(d.loss, 1e-10);
  EXPECT_LE(d.norm, 1e-10);
  EXPECT_LE(d.eval, 1e-10);
  EXPECT_LE(d.weights, 1e-8);  // Adam divides by gradients that may be near zero
}

INSTANTIATE_TEST_SUITE_P(Table, ContextParallel, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

TEST(ContextParallelData, RowsHoldSeveralDocuments) {
  const RankOutcome &masked = one_rank("documents"), &packed = one_rank("packed");
  EXPECT_NE(masked.losses, packed.losses);
  json unmasked = config_of("", json::object(), "documents");
  unmasked["model"]["mask"] = "causal";
  EXPECT_NE(masked.losses, run(unmasked).front().losses);
}

// ---- bytes ----

constexpr int64_t kSteps = 2, kLayers = 4, kHidden = 32, kKvWidth = 16, kSequence = 16;
constexpr int64_t kCalls = 8 * kLayers;  // microbatches x layers

struct Count {
  int64_t calls = 0, wire = 0;
  friend bool operator==(const Count&, const Count&) = default;
};

std::ostream& operator<<(std::ostream& out, const Count& c) {
  return out << c.calls << " calls, " << c.wire << " bytes";
}

/// Calls and wire bytes per step over the group cp, by "op phase"; receiving costs nothing.
using Counts = std::map<std::string, Count>;

Counts per_step(const RankOutcome& rank) {
  Counts counts;
  for (const Traffic& t : rank.traffic) {
    if (t.group != "cp" || t.op == "recv") continue;
    Count& c = counts[t.op + " " + t.phase];
    c.calls += t.count / kSteps;
    c.wire += t.wire_bytes / kSteps;
  }
  return counts;
}

void expect_counts(const json& config, const Counts& expected) {
  for (const RankOutcome& rank : run(config, kSteps)) EXPECT_EQ(per_step(rank), expected);
}

json bytes_config(int64_t n, const char* method, const std::string& memory = "none") {
  const bool heads = method == std::string("ulysses") && n == 4;
  return config_of("cp=" + std::to_string(n), {{"cp", cp(method)}, {"dp_shard", kFsdp}},
                   heads ? "more_heads" : "", memory);
}

/// Per rank, layer and microbatch in fp64: K and V of a part of the sequence.
int64_t block(int64_t n) { return 2 * (kSequence / n) * kKvWidth * 8; }

TEST(ContextParallelBytes, AllGather) {
  for (const int64_t n : {2, 4}) {
    const Count once{kCalls, kCalls * block(n) * (n - 1)};
    expect_counts(bytes_config(n, "all_gather"),
                  {{"all_gather forward", once}, {"reduce_scatter backward", once}});
    for (const char* memory : {"full", "selective_op"}) {  // a replay gathers again
      expect_counts(bytes_config(n, "all_gather", memory), {{"all_gather forward", once},
                                                            {"all_gather backward", once},
                                                            {"reduce_scatter backward", once}});
    }
  }
}

TEST(ContextParallelBytes, Ring) {
  for (const int64_t n : {2, 4}) {
    const auto times = [&](int64_t k) {
      return Count{kCalls * k * (n - 1), kCalls * k * (n - 1) * block(n)};
    };
    expect_counts(bytes_config(n, "ring"),
                  {{"send forward", times(1)}, {"send backward", times(2)}});
    expect_counts(bytes_config(n, "ring", "full"),
                  {{"send forward", times(1)}, {"send backward", times(3)}});
    // Selective recompute keeps the merged output: no step is replayed.
    expect_counts(bytes_config(n, "ring", "selective_op"),
                  {{"send forward", times(1)}, {"send backward", times(2)}});
  }
}

TEST(ContextParallelBytes, Ulysses) {
  for (const int64_t n : {2, 4}) {
    const int64_t tau = kSequence / n;
    const int64_t width = kHidden + (n == 4 ? 4 * (kHidden / 8) : kKvWidth);
    const auto times = [&](int64_t k) {
      return Count{kCalls * 4 * k, kCalls * k * 2 * tau * width * 8 * (n - 1) / n};
    };
    expect_counts(bytes_config(n, "ulysses"),
                  {{"all_to_all forward", times(1)}, {"all_to_all backward", times(1)}});
    expect_counts(bytes_config(n, "ulysses", "full"),
                  {{"all_to_all forward", times(1)}, {"all_to_all backward", times(2)}});
    expect_counts(bytes_config(n, "ulysses", "selective_op"),
                  {{"all_to_all forward", times(1)}, {"all_to_all backward", times(1)}});
  }
}

TEST(ContextParallelBytes, GradientsTravelInTheReduceDtype) {
  json config = bytes_config(2, "all_gather");
  config["precision"] = {{"name", "bf16"}};
  const int64_t elements = 2 * (kSequence / 2) * kKvWidth;
  expect_counts(config, {{"all_gather forward", {kCalls, kCalls * elements * 2}},
                         {"reduce_scatter backward", {kCalls, kCalls * elements * 4}}});
  config["parallel"]["cp"]["method"] = "ring";
  expect_counts(config, {{"send forward", {kCalls, kCalls * elements * 2}},
                         {"send backward", {2 * kCalls, kCalls * elements * (2 + 4)}}});
}

/// recipes 2.10: debug, fp32, T = 512, cp = 2, ring forward: 524,288 B per layer.
TEST(ContextParallelBytes, OneLayerOfTheDebugFlavour) {
  json config = bytes_config(2, "ring");
  config["model"] = {
      {"name", "llama3"}, {"flavour", "debug"}, {"layers", 1}, {"seq_len", 512}, {"vocab", "data"}};
  config["precision"] = {{"name", "fp32"}};
  config["train"]["global_batch"] = 1;
  for (const RankOutcome& rank : run(config, kSteps)) {
    EXPECT_EQ(per_step(rank).at("send forward"), (Count{1, 524'288}));
  }
}

/// Causal work of the ranks, the largest over the mean.
double imbalance(int64_t n, const char* method, const char* balance) {
  const auto ranks = run(
      config_of("cp=" + std::to_string(n), {{"cp", cp(method, balance)}, {"dp_shard", kFsdp}}, ""),
      kSteps);
  int64_t largest = 0, total = 0;
  for (const RankOutcome& rank : ranks) {
    largest = std::max(largest, rank.counters.at("cp.work"));
    total += rank.counters.at("cp.work");
  }
  return static_cast<double>(largest * n) / total;
}

TEST(ContextParallelWork, IsEqualWithHeadtail) {
  for (const char* method : {"all_gather", "ring"}) {
    EXPECT_EQ(imbalance(2, method, "headtail"), 1.0);
    EXPECT_EQ(imbalance(4, method, "headtail"), 1.0);
    EXPECT_EQ(imbalance(2, method, "none"), 1.5);
    EXPECT_EQ(imbalance(4, method, "none"), 1.75);
  }
  EXPECT_EQ(imbalance(2, "ulysses", "none"), 1.0) << "every rank has the whole triangle";
}

}  // namespace
}  // namespace assay::parity
