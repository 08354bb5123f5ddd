// parallel/zero2: optimizer state and gradients in shards; reduced in every microbatch.
#include "../shards/zero.h"
#include "assay/plugin.h"

namespace assay::parallel {
namespace {

class Zero2 final : public Zero {
 public:
  using Options = ZeroOptions;
  explicit Zero2(const Options& options) : Zero(options, SyncMicrobatches::every, "zero2") {}
};

}  // namespace
}  // namespace assay::parallel

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::parallel::Zero2>(
      {.name = "zero2",
       .summary = "optimizer state and gradients in shards; reduced in every microbatch",
       .reference = "arXiv:1910.02054",
       .provides = {"meta.safe"},
       .dims = {"dp_shard"}});
}
