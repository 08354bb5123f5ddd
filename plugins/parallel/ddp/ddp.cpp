// Counting gradients into buckets and reducing the buckets in order.
#include "ddp.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "assay/plugin.h"
#include "assay/precision.h"
#include "buckets.h"

namespace assay::parallel {
namespace {

constexpr double kBytesPerMebibyte = 1048576.0;

class DdpSync final : public GradientSync {
 public:
  DdpSync(const RankContext& context, const DdpOptions& options)
      : group_(context.groups(MeshDim::dp_replicate)),
        all_reduces_(context.counters["ddp.all_reduces"]),
        reduce_dtype_(context.precision.dtypes().reduce),
        overlap_(options.overlap),
        buckets_(make_buckets(context.parameters,
                              static_cast<int64_t>(options.bucket_mb * kBytesPerMebibyte))),
        bucket_of_(context.parameters.size()),
        calls_(buckets_.size()) {
    for (size_t b = 0; b < buckets_.size(); ++b) {
      for (const size_t parameter : buckets_[b].members) bucket_of_[parameter] = b;
    }
    forget();
  }

  void ready(size_t parameter) override {
    if (is_ready_[parameter]) return;
    is_ready_[parameter] = true;
    --missing_[bucket_of_[parameter]];
    while (overlap_ && next_ < buckets_.size() && missing_[next_] == 0) start(next_++);
  }

  void flush(std::span<const size_t> parameters) override {
    for (const size_t parameter : parameters) ready(parameter);
  }

  void wait() override {
    const at::NoGradGuard no_grad;
    while (next_ < buckets_.size()) start(next_++);
    for (size_t b = 0; b < calls_.size(); ++b) {
      calls_[b].work.wait();
      if (calls_[b].reduced.defined()) buckets_[b].flat.copy_(calls_[b].reduced);
      calls_[b] = {};
    }
    forget();
  }

 private:
  struct Call {
    Work work{};
    Tensor reduced{};  ///< in the reduce dtype; undefined when that is the gradients' own
  };

  void start(size_t b) {
    const at::NoGradGuard no_grad;
    Tensor flat = buckets_[b].flat;
    if (flat.scalar_type() != reduce_dtype_) flat = calls_[b].reduced = flat.to(reduce_dtype_);
    calls_[b].work = group_.all_reduce(flat);
    ++all_reduces_;
  }

  void forget() {
    missing_.clear();
    for (const Bucket& bucket : buckets_) missing_.push_back(bucket.members.size());
    is_ready_.assign(bucket_of_.size(), false);
    next_ = 0;
  }

  Communicator& group_;
  int64_t& all_reduces_;
  const at::ScalarType reduce_dtype_;
  const bool overlap_;
  const std::vector<Bucket> buckets_;
  std::vector<size_t> bucket_of_;  ///< by parameter
  std::vector<Call> calls_;        ///< by bucket
  std::vector<size_t> missing_;    ///< by bucket: gradients that are not final
  size_t next_ = 0;                ///< the bucket that starts next, on every rank in this order
  std::vector<bool> is_ready_;     ///< by parameter
};

}  // namespace

std::unique_ptr<GradientSync> Ddp::gradient_sync(const RankContext& context) {
  if (context.mesh.degree(MeshDim::dp_replicate) == 1) return nullptr;
  return std::make_unique<DdpSync>(context, options_);
}

}  // namespace assay::parallel

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::parallel::Ddp>({.name = "ddp",
                                       .summary = "replicas that sum their gradients in buckets",
                                       .reference = "arXiv:2006.15704",
                                       .provides = {"meta.safe"},
                                       .dims = {"dp_replicate"}});
}
