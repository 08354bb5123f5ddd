// Picks the table of fused kernels once per process.
#include "kernel_table.h"

#include <ATen/Version.h>

#include <string>

namespace assay::fused {

const KernelTable& kernels() {
  static const KernelTable& table = []() -> const KernelTable& {
    const std::string capability = at::get_cpu_capability();
    if (capability == "AVX512") return kernels_avx512();
    if (capability == "AVX2") return kernels_avx2();
    return kernels_default();
  }();
  return table;
}

}  // namespace assay::fused
