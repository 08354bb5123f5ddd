// The collectives as functional operators: what recompute, tracing, dry runs and capture see.
#pragma once

#include <cstdint>
#include <vector>

#include "assay/tensor.h"

namespace assay::comm {

/// assay::all_reduce(Tensor x, int group, int op) -> Tensor and so on; `group` is
/// Communicator::handle(), `op` a ReduceOp. One kernel serves CPU, CUDA and Meta: the communicator
/// moves no bytes of meta tensors. None has a gradient.
Tensor all_reduce(const Tensor& x, int64_t group, int64_t op);
Tensor all_gather(const Tensor& x, int64_t group);      ///< (d0, ...) -> (n d0, ...)
Tensor reduce_scatter(const Tensor& x, int64_t group);  ///< (n d0, ...) -> (d0, ...), sum
Tensor all_to_all(const Tensor& x, int64_t group, at::IntArrayRef out_splits,
                  at::IntArrayRef in_splits);

}  // namespace assay::comm
