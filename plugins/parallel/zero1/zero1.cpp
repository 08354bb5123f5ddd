// parallel/zero1: optimizer state in shards; gradients are reduced in the last microbatch.
#include "../shards/zero.h"
#include "assay/plugin.h"

namespace assay::parallel {
namespace {

class Zero1 final : public Zero {
 public:
  using Options = ZeroOptions;
  explicit Zero1(const Options& options) : Zero(options, SyncMicrobatches::last, "zero1") {}
};

}  // namespace
}  // namespace assay::parallel

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::parallel::Zero1>(
      {.name = "zero1",
       .summary = "optimizer state in shards; gradients are reduced in the last microbatch",
       .reference = "arXiv:1910.02054",
       .provides = {"meta.safe"},
       .dims = {"dp_shard"}});
}
