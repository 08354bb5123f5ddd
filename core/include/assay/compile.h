// CompileBackend: the contract of kind `compile`: other kernels for the same operations.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "assay/kind.h"
#include "assay/model.h"
#include "assay/rank_context.h"

namespace assay {

/// Numerics: the same mathematics as eager (class num), other order of sums allowed.
class ASSAY_API CompileBackend {
 public:
  static constexpr Kind kind = Kind::compile;
  virtual ~CompileBackend();

  /// Innermost layer: sees plain local tensors. Default: nothing.
  virtual std::unique_ptr<Ops> wrap_ops(std::unique_ptr<Ops> next, const RankContext& context);

  /// Around the recompute region. Default: nothing.
  virtual std::unique_ptr<BlockRunner> wrap_block(std::unique_ptr<BlockRunner> next,
                                                  const RankContext& context);

  virtual std::vector<std::string> engagement() const { return {}; }
};

}  // namespace assay
