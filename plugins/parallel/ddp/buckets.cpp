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

std::vector<Bucket> make_buckets(std::vector<Parameter>& parameters, int64_t bucket_bytes) {
  const at::NoGradGuard no_grad;
  std::vector<size_t> present;
  std::vector<int64_t> bytes;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].present) continue;
    present.push_back(i);
    bytes.push_back(static_cast<int64_t>(parameters[i].gradient.nbytes()));
  }
  std::vector<Bucket> buckets;
  for (std::vector<size_t>& members : plan_buckets(bytes, bucket_bytes)) {
    for (size_t& member : members) member = present[member];
    int64_t length = 0;
    for (const size_t i : members) length += parameters[i].gradient.numel();
    const Tensor flat = at::zeros({length}, parameters[members[0]].gradient.options());
    int64_t offset = 0;
    for (const size_t i : members) {
      Tensor gradient = parameters[i].gradient;  // the tensor itself is moved, not replaced
      const Tensor place = flat.narrow(0, offset, gradient.numel()).view(gradient.sizes());
      offset += gradient.numel();
      gradient.set_(place.storage(), place.storage_offset(), place.sizes(), place.strides());
    }
    buckets.push_back({std::move(members), flat});
  }
  return buckets;
}

}  // namespace assay::parallel
