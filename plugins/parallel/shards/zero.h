// Zero: whole weights, sharded optimizer state; what zero1 and zero2 share.
#pragma once

#include <memory>
#include <vector>

#include "assay/options.h"
#include "assay/parallel.h"
#include "sharded_sync.h"

namespace assay::parallel {

struct ZeroOptions {
  double bucket_mb = 25;

  static void declare(OptionTable<ZeroOptions>& t) {
    t.add(&ZeroOptions::bucket_mb, "bucket_mb", Affects::speed, {1e-6, 1e6},
          "a message holds about this many MiB of gradients");
  }
};

/// arXiv:1910.02054. Each rank updates its shard of every parameter and gathers the others'.
///
///   reduce_scatter of gradients, local update, all_gather of weights
///   wire bytes per rank and step = N w(n) (r e_g + e_p), r = microbatches that reduce, N padded
class Zero : public ParallelStrategy {
 public:
  Zero(const ZeroOptions& options, SyncMicrobatches microbatches, std::string name)
      : options_(options), microbatches_(microbatches), name_(std::move(name)) {}

  void shard(ParameterPlacement& stored, const Mesh& mesh) const override;
  void prepare(const RankContext& context) override;
  void publish(const RankContext& context) override;
  std::unique_ptr<GradientSync> gradient_sync(const RankContext& context) override;
  std::vector<std::string> engagement() const override;

 private:
  std::vector<const Bundle*> bundles() const;

  const ZeroOptions options_;
  const SyncMicrobatches microbatches_;
  const std::string name_;
  std::vector<std::unique_ptr<Bundle>> bundles_;
};

}  // namespace assay::parallel
