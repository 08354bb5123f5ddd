// Resizes the storage behind a tensor, which LibTorch offers to its own operators only.
#include "assay/storage.h"

#include <ATen/native/Resize.h>

#include "assay/error.h"

namespace assay {
namespace {

void resize(const Tensor& tensor, int64_t bytes) {
  if (tensor.is_meta()) {
    tensor.storage().set_nbytes(static_cast<size_t>(bytes));
  } else if (tensor.is_cpu()) {
    at::native::resize_bytes_nocuda(tensor.storage(), c10::SymInt(bytes));
  } else {
    throw Error("weights that come and go live on the CPU or on meta, not on " +
                tensor.device().str());
  }
}

}  // namespace

void free_storage(const Tensor& tensor) { resize(tensor, 0); }

void allocate_storage(const Tensor& tensor) {
  if (!has_storage(tensor)) resize(tensor, static_cast<int64_t>(tensor.nbytes()));
}

bool has_storage(const Tensor& tensor) {
  return tensor.numel() == 0 || tensor.storage().nbytes() > 0;
}

}  // namespace assay
