// Storage of weights that come and go: freed and allocated again under the same tensors.
#pragma once

#include "assay/api.h"
#include "assay/tensor.h"

namespace assay {

/// Frees the memory behind `tensor` and every view of it; they keep their sizes and must not be
/// read. Saved views stay valid for the time after allocate_storage(), which is why a primitive may
/// capture a weight. The tensor must own the whole storage. On meta only the size is kept.
ASSAY_API void free_storage(const Tensor& tensor);

/// The opposite: memory of the tensor's size, contents undefined. Nothing happens if it is there.
ASSAY_API void allocate_storage(const Tensor& tensor);

ASSAY_API bool has_storage(const Tensor& tensor);

}  // namespace assay
