// parallel/ddp: every rank holds all parameters; gradients are summed over dp_replicate.
#pragma once

#include "assay/options.h"
#include "assay/parallel.h"

namespace assay::parallel {

struct DdpOptions {
  double bucket_mb = 25;
  bool overlap = true;

  static void declare(OptionTable<DdpOptions>& t) {
    using enum Affects;
    t.add(&DdpOptions::bucket_mb, "bucket_mb", speed, {1e-6, 1e6},
          "a bucket is closed when it holds this many MiB of gradients");
    t.add(&DdpOptions::overlap, "overlap", speed, {}, "start a bucket while backward goes on");
  }
};

/// Data parallelism by replication, Li et al. 2020, arXiv:2006.15704.
///
///   g = sum over ranks of g_rank        (the loss is already divided by the global token count)
///
/// Buckets in reverse registration order start in that order on every rank, each when all of its
/// gradients are final in the last microbatch; so the number of all_reduces is the number of
/// buckets whatever the accumulation. Wire bytes per step and rank: 2 N e_g (n-1)/n, e_g of the
/// precision's reduce dtype.
class Ddp final : public ParallelStrategy {
 public:
  using Options = DdpOptions;
  explicit Ddp(const Options& options) : options_(options) {}

  std::unique_ptr<GradientSync> gradient_sync(const RankContext& context) override;
  std::vector<std::string> engagement() const override { return {"ddp.all_reduces"}; }

 private:
  const Options options_;
};

}  // namespace assay::parallel
