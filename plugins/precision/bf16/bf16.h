// bf16: fp32 parameters, products in bfloat16.
#pragma once

#include "assay/options.h"
#include "assay/precision.h"

namespace assay::precision {

struct Bf16Options {
  static void declare(OptionTable<Bf16Options>&) {}
};

/// Mixed precision as in autocast, after arXiv:1710.03740: parameters, reductions, main gradients
/// and optimizer state stay fp32; a weight is cast to bf16 once, when it is unsharded, and
/// activations and products are bf16 with fp32 sums. Statistics of norms, softmax, rope and cross
/// entropy are fp32 (Ops). One rank casts like many.
class Bf16 final : public Precision {
 public:
  using Options = Bf16Options;
  explicit Bf16(const Options&) {}

  Dtypes dtypes() const override { return {.compute = at::kBFloat16}; }
};

}  // namespace assay::precision
