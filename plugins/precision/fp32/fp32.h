// fp32: no tensor below single precision.
#pragma once

#include "assay/options.h"
#include "assay/precision.h"

namespace assay::precision {

struct Fp32Options {
  static void declare(OptionTable<Fp32Options>&) {}
};

/// Parameters, products, reductions, gradients and state in fp32: 16 bytes per parameter with
/// AdamW.
class Fp32 final : public Precision {
 public:
  using Options = Fp32Options;
  explicit Fp32(const Options&) {}

  Dtypes dtypes() const override { return {}; }
};

}  // namespace assay::precision
