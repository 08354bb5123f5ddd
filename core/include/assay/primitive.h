// primitive: the one door to autograd. Plugins write forward and backward as plain functions.
#pragma once

#include <functional>
#include <string>

#include "assay/api.h"
#include "assay/tensor.h"

namespace assay {

/// Runs `forward`, and `backward` when gradients flow.
///
/// forward:  inputs -> outputs; what backward needs of activations goes into `saved` (it passes
///           through saved-tensor hooks, so recompute, offload and the ledger see it); integer
///           tensors and plain values may be captured.
/// backward: (saved, gradients of the outputs, undefined where none flowed) -> gradients of the
///           inputs, in order; an undefined entry means none. Weight gradients go to their sinks.
///
/// Everything inside must be operators with CPU and Meta kernels; nothing may read tensor values.
using PrimitiveForward = std::function<Tensors(const Tensors& inputs, Tensors& saved)>;
using PrimitiveBackward = std::function<Tensors(const Tensors& saved, const Tensors& gradients)>;

ASSAY_API Tensors primitive(const Tensors& inputs, const PrimitiveForward& forward,
                            PrimitiveBackward backward);

}  // namespace assay
