// Precision: the contract of kind `precision`, the only owner of dtypes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "assay/kind.h"
#include "assay/ops.h"
#include "assay/rank_context.h"

namespace assay {

/// recipes 4.1. `param` != fp32 with `master` keeps an fp32 copy that the optimizer updates.
struct Dtypes {
  at::ScalarType param = at::kFloat;
  at::ScalarType compute = at::kFloat;  ///< of gathered weights, activations and products
  at::ScalarType reduce = at::kFloat;   ///< of gradient collectives
  at::ScalarType main_grad = at::kFloat;
  at::ScalarType master = at::kFloat;  ///< what the optimizer updates
};

class ASSAY_API Precision {
 public:
  static constexpr Kind kind = Kind::precision;
  virtual ~Precision();

  virtual Dtypes dtypes() const = 0;

  /// Around the kernels and inside the parallel strategies. Default: nothing.
  virtual std::unique_ptr<Ops> wrap_ops(std::unique_ptr<Ops> next, const RankContext& context);

  /// True: the run shows numerics only (emulated products, fp64) and enters no throughput table.
  virtual bool numerics_only() const { return false; }

  virtual std::vector<std::string> engagement() const { return {}; }
};

}  // namespace assay
