// Planning units; what acquires them is in runner.cpp.
#include "fsdp.h"

#include <algorithm>
#include <map>
#include <utility>

#include "../shards/sharded_sync.h"
#include "assay/plugin.h"
#include "runner.h"

namespace assay::parallel {
namespace {

using Members = std::vector<size_t>;

// Parameters by (block of first use, shard group). Blocks that share a parameter are one: their
// entries are merged into the first.
std::vector<Members> plan_units(const RankContext& context) {
  std::map<size_t, size_t> owner;  // parameter -> block
  std::vector<size_t> merged_into;
  for (size_t b = 0; b < context.blocks.size(); ++b) {
    size_t into = b;
    for (const int w : context.blocks[b].weights) {
      const auto found = owner.find(static_cast<size_t>(w));
      if (found != owner.end()) into = std::min(into, merged_into[found->second]);
    }
    merged_into.push_back(into);
    for (const int w : context.blocks[b].weights) owner.emplace(static_cast<size_t>(w), b);
  }
  std::map<std::pair<size_t, MeshGroup>, Members> units;
  for (const auto& [parameter, block] : owner) {
    const MeshGroup group = context.parameters[parameter].placement.shard_group();
    units[{merged_into[block], group}].push_back(parameter);
  }
  std::vector<Members> list;
  for (auto& [key, members] : units) list.push_back(std::move(members));
  return list;
}

}  // namespace

void Fsdp::shard(ParameterPlacement& stored, const Mesh& mesh) const { cut_shard(stored, mesh); }

void Fsdp::prepare(const RankContext& context) {
  unsharded_.emplace(context.counters["fsdp.peak_unsharded_bytes"],
                     context.counters["fsdp.all_gathers"]);
  unit_of_.resize(context.parameters.size());
  std::vector<const Bundle*> bundles;
  for (Members& members : plan_units(context)) {
    units_.push_back(
        std::make_unique<Unit>(context, members, *unsharded_, options_.unshard == "poison"));
    for (const size_t member : members) unit_of_[member] = units_.back().get();
    bundles.push_back(&units_.back()->bundle());
  }
  allocate_stored(context, bundles);
}

std::vector<Unit*> Fsdp::units_of(const BlockSpec& block) const {
  std::vector<Unit*> units;
  for (const int w : block.weights) {
    Unit* unit = unit_of_[static_cast<size_t>(w)];
    if (std::ranges::find(units, unit) == units.end()) units.push_back(unit);
  }
  return units;
}

std::unique_ptr<BlockRunner> Fsdp::wrap_block(std::unique_ptr<BlockRunner> next,
                                              const RankContext& context) {
  const std::vector<Unit*> last = units_of(context.blocks.back());
  std::map<std::string, BlockUnits> units;
  for (const BlockSpec& block : context.blocks) {
    BlockUnits& b = units[block.name];
    b.units = units_of(block);
    b.stays = options_.reshard == "never" ||
              (options_.reshard == "default" && b.units.front() == last.front());
  }
  return std::make_unique<FsdpRunner>(std::move(next), context.blocks, std::move(units),
                                      options_.prefetch, context.pipelined);
}

std::unique_ptr<GradientSync> Fsdp::gradient_sync(const RankContext& context) {
  std::vector<const Bundle*> bundles;
  for (const auto& unit : units_) bundles.push_back(&unit->bundle());
  const auto microbatches =
      options_.sync == "every" ? SyncMicrobatches::every : SyncMicrobatches::last;
  return std::make_unique<ShardedSync>(context, std::move(bundles), microbatches,
                                       context.counters["fsdp.reduce_scatters"]);
}

void Fsdp::unshard(std::span<const BlockSpec> blocks) {
  for (const BlockSpec& block : blocks) {
    for (Unit* unit : units_of(block)) unit->acquire();
  }
}

void Fsdp::reshard(std::span<const BlockSpec> blocks) {
  for (const BlockSpec& block : blocks) {
    for (Unit* unit : units_of(block)) unit->release();
  }
}

}  // namespace assay::parallel

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::parallel::Fsdp>(
      {.name = "fsdp",
       .summary = "parameters, gradients and optimizer state in shards (ZeRO-3)",
       .reference = "arXiv:2304.11277",
       .provides = {"meta.safe"},
       .dims = {"dp_shard"}});
}
