// The primitives of mixtures of experts, as the plain Ops give them.
#pragma once

#include "assay/ops.h"

namespace assay::train {

// See Ops.
Routing eager_route(const Tensor& x, const Weight& router, const Tensor& bias,
                    const RouteSpec& spec);
Dispatch eager_dispatch(const Tensor& x, const Tensor& experts, int64_t expert_count,
                        int64_t pad_rows);
Tensors eager_grouped_linear(const Tensor& x, std::span<const int64_t> expert_rows,
                             std::span<const Weight> weights);
Tensor eager_combine(const Tensor& y, const Dispatch& dispatch, const Tensor& gates);

}  // namespace assay::train
