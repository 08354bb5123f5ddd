// parallel/fsdp: parameters, gradients and optimizer state in shards; weights are whole while used.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "assay/options.h"
#include "assay/parallel.h"
#include "unit.h"

namespace assay::parallel {

struct FsdpOptions {
  std::string reshard = "default";
  std::string sync = "every";
  int64_t prefetch = 1;
  std::string unshard = "plain";

  static void declare(OptionTable<FsdpOptions>& t) {
    using enum Affects;
    t.add(&FsdpOptions::reshard, "reshard", memory, {"default", "always", "never"},
          "free weights between forward and backward: all but the last unit, all, none");
    t.add(&FsdpOptions::sync, "sync", memory, {"every", "last"},
          "microbatches whose gradients are reduced; last keeps unsharded sums in between");
    t.add(&FsdpOptions::prefetch, "prefetch", speed, {0, 8},
          "units gathered ahead of the one that computes");
    t.add(&FsdpOptions::unshard, "unshard", speed, {"plain", "poison"},
          "poison: overwrite weights with NaN instead of freeing them, to find uses out of turn");
  }
};

/// Fully sharded data parallelism (ZeRO-3), arXiv:1910.02054, arXiv:2304.11277; per-parameter
/// shards of dimension 0. A unit is the embedding, a layer or the final norm with the head; blocks
/// that share a parameter share a unit.
///
///   all_gather before forward and backward, reduce_scatter after backward
///   wire bytes per rank and step = w(n) * sum over units of P (a e_p + r e_g), P padded elements,
///   a = 2m where weights are freed after forward, else m; r = m with sync every, 1 with last
///
/// Under a pipeline the actions UNSHARD, RESHARD and REDUCE_GRAD drive it: a = r = 1.
class Fsdp final : public ParallelStrategy {
 public:
  using Options = FsdpOptions;
  explicit Fsdp(const Options& options) : options_(options) {}

  void shard(ParameterPlacement& stored, const Mesh& mesh) const override;
  void prepare(const RankContext& context) override;
  void publish(const RankContext&) override {}  // a gather reads the masters
  std::unique_ptr<BlockRunner> wrap_block(std::unique_ptr<BlockRunner> next,
                                          const RankContext& context) override;
  std::unique_ptr<GradientSync> gradient_sync(const RankContext& context) override;
  void unshard(std::span<const BlockSpec> blocks) override;
  void reshard(std::span<const BlockSpec> blocks) override;
  std::vector<std::string> engagement() const override {
    return {"fsdp.all_gathers", "fsdp.reduce_scatters"};
  }

 private:
  std::vector<Unit*> units_of(const BlockSpec& block) const;

  const Options options_;
  std::optional<Unsharded> unsharded_;
  std::vector<std::unique_ptr<Unit>> units_;
  std::vector<Unit*> unit_of_;  ///< by parameter
};

}  // namespace assay::parallel
