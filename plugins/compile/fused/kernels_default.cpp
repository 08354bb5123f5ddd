// The fused kernels for DEFAULT; CMakeLists.txt gives this file its instruction set.
#include "attention_kernels.h"
#include "row_kernels.h"

namespace assay::fused {

const KernelTable& kernels_default() {
  static const KernelTable table{"DEFAULT",
                                 row_kernels<float>(),
                                 row_kernels<double>(),
                                 row_kernels<c10::BFloat16>(),
                                 loss_kernels<float>(),
                                 loss_kernels<double>(),
                                 product_kernels<float>(),
                                 product_kernels<c10::BFloat16>(),
                                 attention_kernels<float>(),
                                 attention_kernels<c10::BFloat16>()};
  return table;
}

}  // namespace assay::fused
