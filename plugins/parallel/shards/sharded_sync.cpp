// Counting members to ready, one reduce_scatter at a time.
#include "sharded_sync.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "assay/precision.h"

namespace assay::parallel {

void allocate_stored(const RankContext& context, const std::vector<const Bundle*>& bundles) {
  const Dtypes dtypes = context.precision.dtypes();
  const auto zeros = [&](const Box& box, at::ScalarType dtype) {
    return at::zeros(box.size, at::TensorOptions(dtype).device(context.device));
  };
  for (const Bundle* bundle : bundles) {
    for (const size_t member : bundle->members()) {
      Parameter& p = context.parameters[member];
      p.master = zeros(p.stored.box(), dtypes.master);
      p.gradient = zeros(p.stored.box(), dtypes.main_grad);
    }
  }
}

ShardedSync::ShardedSync(const RankContext& context, std::vector<const Bundle*> bundles,
                         SyncMicrobatches microbatches, int64_t& counter)
    : parameters_(context.parameters),
      dtype_(context.precision.dtypes().reduce),
      microbatches_(microbatches),
      counter_(counter),
      bundles_(std::move(bundles)),
      bundle_of_(parameters_.size()),
      is_ready_(parameters_.size(), false),
      progress_(bundles_.size()) {
  for (size_t b = 0; b < bundles_.size(); ++b) {
    for (const size_t member : bundles_[b]->members()) bundle_of_[member] = b;
  }
}

bool ShardedSync::arms(int64_t microbatch, int64_t microbatches) const {
  return microbatches_ == SyncMicrobatches::every || microbatch + 1 == microbatches;
}

void ShardedSync::ready(size_t parameter) {
  if (is_ready_[parameter]) return;
  is_ready_[parameter] = true;
  const size_t b = bundle_of_[parameter];
  if (++progress_[b].ready == bundles_[b]->members().size()) start(b);
}

bool ShardedSync::has_left(const Bundle& bundle) const {
  return std::ranges::any_of(bundle.members(),
                             [&](size_t p) { return parameters_[p].sink.has_gradient(); });
}

// What no microbatch has made ready: gradients that wait for REDUCE_GRAD, and parameters that no
// use has reached.
void ShardedSync::flush(std::span<const size_t> parameters) {
  std::vector<bool> wanted(bundles_.size());
  for (size_t b = 0; b < bundles_.size(); ++b) {
    wanted[b] = !progress_[b].started || has_left(*bundles_[b]);
  }
  for (const size_t parameter : parameters) {
    if (wanted[bundle_of_[parameter]]) ready(parameter);
  }
}

void ShardedSync::start(size_t b) {
  const at::NoGradGuard no_grad;
  finish();
  const Bundle& bundle = *bundles_[b];
  call_ = std::make_unique<Call>(Call{.bundle = b, .message = bundle.pack_gradients(dtype_)});
  call_->mine = at::empty({bundle.slot()}, call_->message.options());
  for (const size_t member : bundle.members()) {
    parameters_[member].sink.release();
    is_ready_[member] = false;
  }
  progress_[b].ready = 0;
  progress_[b].started = true;
  call_->work = bundle.group().reduce_scatter(call_->mine, call_->message);
  ++counter_;
}

void ShardedSync::finish() {
  if (!call_) return;
  const auto call = std::move(call_);
  call->work.wait();
  bool& written = progress_[call->bundle].written;
  bundles_[call->bundle]->unpack_gradients(call->mine, std::exchange(written, true));
}

void ShardedSync::wait() {
  const at::NoGradGuard no_grad;
  finish();
  is_ready_.assign(is_ready_.size(), false);
  std::ranges::fill(progress_, Progress{});
}

}  // namespace assay::parallel
