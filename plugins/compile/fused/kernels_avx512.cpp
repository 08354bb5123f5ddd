// The fused kernels for AVX512; CMakeLists.txt gives this file its instruction set.
#include "attention_kernels.h"
#include "row_kernels.h"

namespace assay::fused {

const KernelTable& kernels_avx512() {
  static const KernelTable table{"AVX512",
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
