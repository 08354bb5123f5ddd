// Planning buckets and pointing the gradient totals into them.
#include "buckets.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

namespace assay::parallel {

std::vector<std::vector<size_t>> plan_buckets(const std::vector<int64_t>& bytes,
                                              int64_t bucket_bytes) {
  std::vector<std::vector<size_t>> buckets;
  int64_t open = bucket_bytes;  // bytes in the last bucket; full, so that the first opens one
  for (size_t i = bytes.size(); i-- > 0;) {
    if (open >= bucket_bytes) {
      buckets.emplace_back();
      open = 0;
    }
    buckets.back().push_back(i);
    open += bytes[i];
  }
  return buckets;
}

std::vector<Bucket> make_buckets(std::vector<Parameter>& parameters, int64_t bucket_bytes,
                                 int64_t multiple) {
  const at::NoGradGuard no_grad;
  std::vector<int64_t> bytes;
  for (const Parameter& p : parameters) {
    bytes.push_back(static_cast<int64_t>(p.sink.total().nbytes()));
  }
  std::vector<Bucket> buckets;
  for (std::vector<size_t>& members : plan_buckets(bytes, bucket_bytes)) {
    int64_t length = 0;
    for (const size_t i : members) length += parameters[i].sink.total().numel();
    length = (length + multiple - 1) / multiple * multiple;
    const Tensor flat = at::zeros({length}, parameters[members[0]].sink.total().options());
    int64_t offset = 0;
    for (const size_t i : members) {
      Tensor total = parameters[i].sink.total();  // the sink's own tensor: moved, not replaced
      const Tensor place = flat.narrow(0, offset, total.numel()).view(total.sizes());
      offset += total.numel();
      total.set_(place.storage(), place.storage_offset(), place.sizes(), place.strides());
    }
    buckets.push_back({std::move(members), flat});
  }
  return buckets;
}

}  // namespace assay::parallel
