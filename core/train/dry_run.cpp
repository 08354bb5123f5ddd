// Assembles on meta, steps once, and reports what is known without running anything.
#include "core/train/dry_run.h"

#include <nlohmann/json.hpp>

#include "core/base/clock.h"
#include "core/train/memory_bytes.h"
#include "core/train/trainer.h"

namespace assay::train {
namespace {

using nlohmann::json;

// The ledger gives one microbatch through all stages of this rank; a pipeline holds several chunks,
// each a stage's share.
int64_t activation_bytes(const Assembly& a, int64_t per_microbatch) {
  const auto live = a.counters.find("pipeline.peak_live_chunks");
  if (live == a.counters.end()) return per_microbatch;
  return per_microbatch / static_cast<int64_t>(a.stages.size()) * live->second;
}

json collectives(const GroupMap& groups) {
  json rows = json::array();
  for (const Traffic& t : groups.traffic()) {
    rows.push_back({{"grp", t.group},
                    {"op", t.op},
                    {"dtype", t.dtype},
                    {"phase", t.phase},
                    {"count", t.count},
                    {"payload_bytes", t.payload_bytes},
                    {"wire_bytes", t.wire_bytes}});
  }
  return rows;
}

}  // namespace

json dry_run(const json& config, int rank) {
  const double start = monotonic_s();
  Trainer trainer(assemble(make_recipe(config), rank, {}, at::kMeta));
  Assembly& a = trainer.assembly();
  const double built = monotonic_s();
  const StepResult step = trainer.step(0, /*measure_activations=*/true);
  const double stepped = monotonic_s();
  int64_t parameters = 0, on_rank = 0;
  for (const Parameter& p : a.parameters) {
    parameters += whole(p.spec.shape).numel();
    if (p.present) on_rank += p.stored.box().numel();
  }
  const MemoryBytes bytes = memory_bytes(a);
  return {{"rank", rank},
          {"world", a.mesh.world()},
          {"build_s", built - start},
          {"step_s", stepped - built},
          {"parameters", parameters},
          {"parameters_on_rank", on_rank},
          {"bytes",
           {{"parameters", bytes.parameters},
            {"gradients", bytes.gradients},
            {"optimizer", bytes.optimizer},
            {"unsharded", bytes.unsharded},
            {"activations", activation_bytes(a, step.saved_activation_bytes)}}},
          {"collectives", collectives(a.groups)},
          {"counters", a.counters}};
}

}  // namespace assay::train
