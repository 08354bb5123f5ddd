// Bundles are buckets in reverse order of registration, in which backward makes gradients final.
#include "zero.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <map>

#include "../ddp/buckets.h"
#include "assay/precision.h"

namespace assay::parallel {
namespace {

constexpr double kBytesPerMebibyte = 1048576.0;

}  // namespace

void Zero::shard(ParameterPlacement& stored, const Mesh& mesh) const { cut_shard(stored, mesh); }

void Zero::prepare(const RankContext& context) {
  const auto width = static_cast<int64_t>(c10::elementSize(context.precision.dtypes().main_grad));
  std::map<MeshGroup, std::vector<size_t>> by_group;
  for (size_t i = 0; i < context.parameters.size(); ++i) {
    const Parameter& p = context.parameters[i];
    if (p.present) by_group[p.placement.shard_group()].push_back(i);
  }
  for (const auto& [group, parameters] : by_group) {
    std::vector<int64_t> bytes;
    for (const size_t i : parameters) {
      bytes.push_back(context.parameters[i].placement.box().numel() * width);
    }
    for (std::vector<size_t>& members :
         plan_buckets(bytes, static_cast<int64_t>(options_.bucket_mb * kBytesPerMebibyte))) {
      for (size_t& member : members) member = parameters[member];
      bundles_.push_back(std::make_unique<Bundle>(context, std::move(members)));
    }
  }
  allocate_stored(context, bundles());
  if (microbatches_ == SyncMicrobatches::every) return;
  // Unsharded sums stay anyway: the reduced shard takes its own place within them.
  for (Parameter& p : context.parameters) {
    if (!p.present) continue;
    p.sink.hold();
    Tensor own = p.sink.total();
    for (size_t d = 0; d < p.stored.box().size.size(); ++d) {
      const int64_t begin = p.stored.box().begin[d] - p.placement.box().begin[d];
      own = own.narrow(static_cast<int64_t>(d), begin, p.stored.box().size[d]);
    }
    p.gradient = own;
  }
}

std::vector<const Bundle*> Zero::bundles() const {
  std::vector<const Bundle*> list;
  for (const auto& bundle : bundles_) list.push_back(bundle.get());
  return list;
}

void Zero::publish(const RankContext& context) {
  const at::NoGradGuard no_grad;
  const auto dtype = context.precision.dtypes().compute;
  for (const auto& bundle : bundles_) {
    const Tensor mine = bundle->pack_masters(dtype);
    Tensor all = at::empty({bundle->message()}, mine.options());
    bundle->group().all_gather(all, mine).wait();
    bundle->unpack_weights(all);
    ++context.counters[name_ + ".all_gathers"];
  }
}

std::unique_ptr<GradientSync> Zero::gradient_sync(const RankContext& context) {
  return std::make_unique<ShardedSync>(context, bundles(), microbatches_,
                                       context.counters[name_ + ".reduce_scatters"]);
}

std::vector<std::string> Zero::engagement() const {
  return {name_ + ".all_gathers", name_ + ".reduce_scatters"};
}

}  // namespace assay::parallel
