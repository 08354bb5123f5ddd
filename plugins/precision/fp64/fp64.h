// fp64: double precision throughout, for parity runs.
#pragma once

#include "assay/options.h"
#include "assay/precision.h"

namespace assay::precision {

struct Fp64Options {
  static void declare(OptionTable<Fp64Options>&) {}
};

/// Parameters, products, statistics, reductions and state in fp64, so that two layouts of one run
/// differ by 1e-10 at most. Numerics only: in no throughput table.
class Fp64 final : public Precision {
 public:
  using Options = Fp64Options;
  explicit Fp64(const Options&) {}

  Dtypes dtypes() const override {
    return {at::kDouble, at::kDouble, at::kDouble, at::kDouble, at::kDouble};
  }
  bool numerics_only() const override { return true; }
};

}  // namespace assay::precision
