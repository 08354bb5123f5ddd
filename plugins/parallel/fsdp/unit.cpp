// Gathering, freeing, counting holders.
#include "unit.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <limits>
#include <utility>

#include "assay/error.h"
#include "assay/precision.h"
#include "assay/storage.h"

namespace assay::parallel {

Unit::Unit(const RankContext& context, std::vector<size_t> members, Unsharded& unsharded,
           bool poison)
    : bundle_(context, std::move(members)), unsharded_(unsharded), poison_(poison) {
  int64_t numel = 0;
  for (const size_t m : bundle_.members()) numel += context.parameters[m].placement.box().numel();
  buffer_ = at::empty({numel},
                      at::TensorOptions(context.precision.dtypes().compute).device(context.device));
  int64_t offset = 0;
  for (const size_t m : bundle_.members()) {
    Parameter& p = context.parameters[m];
    p.weight = buffer_.narrow(0, offset, p.placement.box().numel()).view(p.placement.box().size);
    offset += p.weight.numel();
  }
  free_storage(buffer_);
}

void Unit::prefetch() {
  if (whole() || gathered_.defined()) return;
  const at::NoGradGuard no_grad;
  shard_ = bundle_.pack_masters(buffer_.scalar_type());
  gathered_ = at::empty({bundle_.message()}, buffer_.options());
  gather_ = bundle_.group().all_gather(gathered_, shard_);
  ++unsharded_.gathers;
  unsharded_.add(static_cast<int64_t>(gathered_.nbytes()));
}

void Unit::finish_gather() {
  const at::NoGradGuard no_grad;
  gather_.wait();
  allocate_storage(buffer_);
  unsharded_.add(static_cast<int64_t>(buffer_.nbytes()));
  bundle_.unpack_weights(gathered_);
  unsharded_.add(-static_cast<int64_t>(gathered_.nbytes()));
  shard_ = gathered_ = Tensor();
}

void Unit::acquire() {
  if (holders_ == 0) {
    prefetch();
    finish_gather();
  }
  ++holders_;
}

void Unit::release() {
  ASSAY_CHECK(holders_ > 0, "a unit is released more often than acquired");
  if (--holders_ == 0) free();
}

void Unit::free() {
  unsharded_.add(-static_cast<int64_t>(buffer_.nbytes()));
  if (poison_) {
    const at::NoGradGuard no_grad;
    buffer_.fill_(std::numeric_limits<double>::quiet_NaN());
  } else {
    free_storage(buffer_);
  }
}

}  // namespace assay::parallel
