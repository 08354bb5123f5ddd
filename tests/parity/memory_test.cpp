// Bytes of parameters, gradients and optimizer state are those of the closed forms (recipes 2.3).
#include <gtest/gtest.h>

#include "layouts.h"

namespace assay::parity::memory {
namespace {

using nlohmann::json;

constexpr int64_t kBytes = 8;  // fp64: weights, gradients, masters and both moments alike

int64_t elements(const RankOutcome& rank) {
  int64_t n = 0;
  for (const StoredPart& p : rank.parts) n += p.box.numel();
  return n;
}

int64_t all_elements() {
  static const int64_t n = elements(run(base_config(), 1).front());
  return n;
}

struct Formula {
  const char* mesh;
  json components;
  bool whole_weights, whole_gradients;  ///< on every rank; else its stored part
  bool separate_master;
};

TEST(Memory, StateIsWhatTheStrategyKeeps) {
  const json ddp = {{"name", "ddp"}}, zero1 = {{"name", "zero1"}}, zero2 = {{"name", "zero2"}},
             fsdp = {{"name", "fsdp"}}, tp = {{"name", "tp"}};
  for (const Formula& f : {
           Formula{"dp_replicate=2", {{"dp_replicate", ddp}}, true, true, false},
           {"dp_shard=2", {{"dp_shard", zero1}}, true, true, true},
           {"dp_shard=4", {{"dp_shard", zero2}}, true, false, true},
           {"dp_shard=2", {{"dp_shard", fsdp}}, false, false, false},
           {"dp_shard=4", {{"dp_shard", fsdp}}, false, false, false},
           {"tp=2", {{"tp", tp}}, false, false, false},
       }) {
    SCOPED_TRACE(f.mesh + f.components.dump());
    int64_t stored_by_all = 0;
    for (const RankOutcome& rank : run(layout(f.mesh, f.components), 1)) {
      const int64_t stored = elements(rank), whole = all_elements();
      EXPECT_EQ(rank.memory.parameters, (f.whole_weights ? whole : stored) * kBytes);
      EXPECT_EQ(rank.memory.gradients, (f.whole_gradients ? whole : stored) * kBytes);
      EXPECT_EQ(rank.memory.optimizer, stored * (f.separate_master ? 3 : 2) * kBytes);
      stored_by_all += stored;
    }
    if (f.components.contains("dp_shard")) {
      EXPECT_EQ(stored_by_all, all_elements());
    }
  }
}

}  // namespace
}  // namespace assay::parity::memory
