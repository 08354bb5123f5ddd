// Every collective is where the closed forms say: counts and wire bytes, exactly (recipes 0.2, 2).
#include <gtest/gtest.h>

#include <map>

#include "layouts.h"

namespace assay::parity::bytes {
namespace {

using nlohmann::json;

constexpr int64_t kSteps = 2, kWidth = 8;  // fp64: bytes per element of weights and gradients
constexpr int64_t kLayers = 4, kHidden = 32, kSequence = 16;

struct Count {
  int64_t calls = 0, wire = 0;
  friend bool operator==(const Count&, const Count&) = default;
};

std::ostream& operator<<(std::ostream& out, const Count& c) {
  return out << c.calls << " calls, " << c.wire << " bytes";
}

/// Calls and wire bytes per step by "group op phase".
std::map<std::string, Count> per_step(const RankOutcome& rank) {
  std::map<std::string, Count> counts;
  for (const Traffic& t : rank.traffic) {
    Count& c = counts[t.group + " " + t.op + " " + t.phase];
    c.calls += t.count / kSteps;
    c.wire += t.wire_bytes / kSteps;
  }
  return counts;
}

const RankOutcome& one_rank() {
  static const RankOutcome one = run(base_config(), 1).front();
  return one;
}

int64_t unpadded_elements() {
  int64_t n = 0;
  for (const StoredPart& p : one_rank().parts) n += p.box.numel();
  return n;
}

int64_t padded(const StoredPart& p, int64_t n) {
  const int64_t rows = p.box.size.at(0);
  return p.box.numel() / rows * ((rows + n - 1) / n * n);
}

/// Padded elements of each unit: the embedding, every layer, norm and head.
std::map<std::string, int64_t> units(int64_t n) {
  std::map<std::string, int64_t> sizes;
  for (const StoredPart& p : one_rank().parts) {
    std::string unit = p.name.find("embed_tokens") != std::string::npos ? "embedding" : "head";
    const size_t layers = p.name.find("layers.");
    if (layers != std::string::npos) unit = p.name.substr(layers, 8);
    sizes[unit] += padded(p, n);
  }
  return sizes;
}

int64_t sum(const std::map<std::string, int64_t>& sizes) {
  int64_t total = 0;
  for (const auto& [unit, size] : sizes) total += size;
  return total;
}

/// S w(n).
int64_t wire(int64_t bytes, int64_t n) { return bytes * (n - 1) / n; }

TEST(Bytes, TheModelHasParametersThatDoNotDivide) {
  EXPECT_GT(sum(units(2)), unpadded_elements());
  EXPECT_EQ(units(2).size(), 2u + kLayers);
}

TEST(Bytes, Ddp) {
  const auto ranks = run(layout("dp_replicate=2", {{"dp_replicate", {{"name", "ddp"}}}}), kSteps);
  for (const RankOutcome& rank : ranks) {
    const auto counts = per_step(rank);
    EXPECT_EQ(counts.size(), 1u);
    EXPECT_EQ(counts.at("dp_replicate all_reduce backward"),
              (Count{1, 2 * wire(unpadded_elements() * kWidth, 2)}));
  }
}

TEST(Bytes, Zero) {
  for (const int64_t n : {2, 4}) {
    const int64_t microbatches = 8 / n, message = sum(units(n)) * kWidth;
    for (const char* name : {"zero1", "zero2"}) {
      const int64_t reductions = name == std::string("zero2") ? microbatches : 1;
      for (const RankOutcome& rank :
           run(layout("dp_shard=" + std::to_string(n), {{"dp_shard", {{"name", name}}}}), kSteps)) {
        const auto counts = per_step(rank);
        EXPECT_EQ(counts.size(), 2u);
        EXPECT_EQ(counts.at("fsdp reduce_scatter backward"),
                  (Count{reductions, reductions * wire(message, n)}));
        EXPECT_EQ(counts.at("fsdp all_gather optimizer"), (Count{1, wire(message, n)}));
      }
    }
  }
}

struct FsdpCase {
  const char* reshard;
  const char* sync;
  int64_t freed_units;  ///< of 2 + L: gathered again for backward
};

TEST(Bytes, Fsdp) {
  for (const int64_t n : {2, 4}) {
    for (const FsdpCase& c :
         {FsdpCase{"default", "every", 1 + kLayers}, FsdpCase{"always", "every", 2 + kLayers},
          FsdpCase{"never", "every", 0}, FsdpCase{"default", "last", 1 + kLayers}}) {
      const json fsdp = {{"name", "fsdp"}, {"reshard", c.reshard}, {"sync", c.sync}};
      const int64_t m = 8 / n, all = sum(units(n)) * kWidth;
      const int64_t reductions = c.sync == std::string("every") ? m : 1;
      int64_t again = c.freed_units == 0 ? 0 : all;
      if (c.freed_units == 1 + kLayers) again -= units(n).at("head") * kWidth;
      for (const RankOutcome& rank :
           run(layout("dp_shard=" + std::to_string(n), {{"dp_shard", fsdp}}), kSteps)) {
        const auto counts = per_step(rank);
        SCOPED_TRACE(std::string(c.reshard) + " " + c.sync + " n=" + std::to_string(n));
        Count gathers = counts.at("fsdp all_gather forward");
        if (c.freed_units > 0) {
          gathers.calls += counts.at("fsdp all_gather backward").calls;
          gathers.wire += counts.at("fsdp all_gather backward").wire;
        }
        EXPECT_EQ(gathers, (Count{m * (2 + kLayers + c.freed_units), m * wire(all + again, n)}));
        EXPECT_EQ(counts.at("fsdp reduce_scatter backward"),
                  (Count{reductions * (2 + kLayers), reductions * wire(all, n)}));
      }
    }
  }
}

/// The replicas sum shards, which carry no padding.
TEST(Bytes, Hsdp) {
  const auto ranks = run(layout("dp_replicate=2 dp_shard=2", {{"dp_replicate", {{"name", "ddp"}}},
                                                              {"dp_shard", {{"name", "fsdp"}}}}),
                         kSteps);
  for (const RankOutcome& rank : ranks) {
    int64_t shard = 0;
    for (const StoredPart& p : rank.parts) shard += p.box.numel();
    EXPECT_EQ(per_step(rank).at("dp_replicate all_reduce backward"),
              (Count{1, 2 * wire(shard * kWidth, 2)}));
    EXPECT_EQ(per_step(rank).at("fsdp reduce_scatter backward"),
              (Count{2 * (2 + kLayers), 2 * wire(sum(units(2)) * kWidth, 2)}));
  }
}

TEST(Bytes, TensorAndSequenceParallel) {
  constexpr int64_t kMicrobatches = 8, kLines = 2 * kLayers + 1;
  const int64_t message = kSequence * kHidden * kWidth;
  for (const bool regather : {true, false}) {
    const json tp = {{"name", "tp"}, {"regather", regather}};
    for (const RankOutcome& rank : run(layout("tp=2", {{"tp", tp}}), kSteps)) {
      const auto counts = per_step(rank);
      const int64_t again = regather ? 2 * kLayers : 0;
      const auto times = [&](int64_t calls) {
        return Count{kMicrobatches * calls, kMicrobatches * calls * wire(message, 2)};
      };
      EXPECT_EQ(counts.at("tp all_gather forward"), times(kLines));
      EXPECT_EQ(counts.at("tp reduce_scatter forward"), times(kLines));
      EXPECT_EQ(counts.at("tp all_gather backward"), times(kLines + again));
      EXPECT_EQ(counts.at("tp reduce_scatter backward"), times(kLines));
      // Loss: three statistics per token. Norms: one message per step.
      EXPECT_EQ(counts.at("tp all_reduce forward"),
                (Count{3 * kMicrobatches, 3 * kMicrobatches * 2 * wire(kSequence * kWidth, 2)}));
      EXPECT_EQ(counts.at("tp all_reduce backward"),
                (Count{1, 2 * wire(kLines * kHidden * kWidth, 2)}));
    }
  }
}

TEST(Bytes, TensorParallelWithoutSequenceParallel) {
  constexpr int64_t kMicrobatches = 8, kLines = 2 * kLayers + 1;
  const json tp = {{"name", "tp"}, {"sp", false}};
  for (const RankOutcome& rank : run(layout("tp=2", {{"tp", tp}}), kSteps)) {
    const auto counts = per_step(rank);
    const int64_t message = 2 * wire(kSequence * kHidden * kWidth, 2);
    const int64_t statistics = 2 * wire(kSequence * kWidth, 2);
    EXPECT_EQ(counts.size(), 2u);
    EXPECT_EQ(
        counts.at("tp all_reduce forward"),
        (Count{kMicrobatches * (kLines + 3), kMicrobatches * (kLines * message + 3 * statistics)}));
    EXPECT_EQ(counts.at("tp all_reduce backward"),
              (Count{kMicrobatches * kLines, kMicrobatches * kLines * message}));
  }
}

/// The bytes of tp with regather; (tp - 1) pieces per former collective inside the layers.
TEST(Bytes, AsyncTensorParallel) {
  constexpr int64_t kMicrobatches = 8, kLines = 2 * kLayers + 1;
  const int64_t message = wire(kSequence * kHidden * kWidth, 2);
  for (const int64_t pieces : {1, 2}) {
    const json tp = {{"name", "async_tp"}, {"pieces", pieces}};
    for (const RankOutcome& rank : run(layout("tp=2", {{"tp", tp}}), kSteps)) {
      const auto counts = per_step(rank);
      const auto times = [&](int64_t calls, int64_t parts) {
        return Count{kMicrobatches * calls * parts, kMicrobatches * calls * message};
      };
      // Forward: a gather and a scatter per pair of products; the embedding and the head stay.
      EXPECT_EQ(counts.at("tp send forward"), times(4 * kLayers, pieces));
      EXPECT_EQ(counts.at("tp all_gather forward"), times(1, 1));
      EXPECT_EQ(counts.at("tp reduce_scatter forward"), times(1, 1));
      // Backward: the same, and the inputs of column products again.
      EXPECT_EQ(counts.at("tp send backward"), times(6 * kLayers, pieces));
      EXPECT_EQ(counts.at("tp all_gather backward"), times(1, 1));
      EXPECT_EQ(counts.at("tp reduce_scatter backward"), times(1, 1));
      EXPECT_EQ(counts.at("tp all_reduce backward"),
                (Count{1, 2 * wire(kLines * kHidden * kWidth, 2)}));
    }
  }
}

/// Two units are whole at once (the one that computes and the one gathered ahead), and the message
/// of a third is copied out.
TEST(Bytes, FsdpHoldsTwoUnitsAndAMessage) {
  const auto ranks = run(layout("dp_shard=2", {{"dp_shard", {{"name", "fsdp"}}}}), kSteps);
  int64_t largest = 0;
  for (const auto& [unit, size] : units(2)) largest = std::max(largest, size);
  for (const RankOutcome& rank : ranks) {
    const int64_t peak = rank.counters.at("fsdp.peak_unsharded_bytes");
    EXPECT_GT(peak, largest * kWidth);
    EXPECT_LE(peak, 3 * largest * kWidth);
  }
}

}  // namespace
}  // namespace assay::parity::bytes
