// Differentiable collectives: operators `assay::all_reduce`, `all_gather`, `reduce_scatter`,
// `all_to_all` and `broadcast` (CPU, CUDA and Meta kernels), and functions that give them
// gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "assay/api.h"
#include "assay/communicator.h"
#include "assay/tensor.h"

namespace assay {

/// What the gradient of a collective's output is on each rank: `partial`, a part of a sum over the
/// ranks (what follows differs per rank), or `replicated`, the whole on every rank.
enum class Cotangent { partial, replicated };

/// Functional: x is not written. y = sum over ranks; gradient: identity when replicated, all_reduce
/// when partial.
ASSAY_API Tensor all_reduce(const Tensor& x, Communicator& group,
                            Cotangent cotangent = Cotangent::replicated);

/// y = x; gradient: all_reduce. Where a replicated tensor enters work that differs per rank.
ASSAY_API Tensor replicate(const Tensor& x, Communicator& group);

/// Concatenates along `dim`. Gradient: reduce_scatter when partial, this rank's slice when
/// replicated.
ASSAY_API Tensor all_gather(const Tensor& x, Communicator& group, int64_t dim = 0,
                            Cotangent cotangent = Cotangent::partial);

/// Sums and keeps this rank's part of `dim`, which n must divide. Gradient: all_gather.
ASSAY_API Tensor reduce_scatter(const Tensor& x, Communicator& group, int64_t dim = 0);

/// Keeps this rank's part of `dim` of a replicated tensor. Gradient: all_gather.
ASSAY_API Tensor scatter(const Tensor& x, Communicator& group, int64_t dim = 0);

/// Rows of dimension 0 to and from each rank. Gradient: all_to_all with the splits exchanged.
ASSAY_API Tensor all_to_all(const Tensor& x, Communicator& group, std::vector<int64_t> out_splits,
                            std::vector<int64_t> in_splits);

/// Without gradient: the elementwise maximum over ranks (softmax statistics, amax).
ASSAY_API Tensor all_reduce_max(const Tensor& x, Communicator& group);

}  // namespace assay
