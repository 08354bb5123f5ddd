// TpOps: the layer of the ops stack that looks at the cut of a weight and at nothing else.
#pragma once

#include <cstdint>
#include <optional>

#include "assay/ops.h"
#include "tp.h"

namespace assay::parallel {

inline constexpr int64_t kSequence = 1;  ///< dimension of (B, S, D)

class TpOps : public OpsLayer {
 public:
  TpOps(std::unique_ptr<Ops> next, const TpOptions& options, const RankContext& context);

  Tensor embedding(const Tensor& anchor, const Tensor& ids, const Weight& table) override;
  Tensors linear(const Tensor& x, std::span<const Weight> weights) override;
  CrossEntropyStats ce_stats(const Tensor& hidden, const Weight& head,
                             const Tensor& labels) override;

 protected:
  /// Weights cut on the output: x enters once for all of them.
  virtual Tensors column(const Tensor& x, std::span<const Weight> weights);
  /// Weights cut on the input: partial products leave as their sum.
  virtual Tensors row(const Tensor& x, std::span<const Weight> weights);

  Tensor enter(const Tensor& x);
  Tensor leave(const Tensor& x);
  Communicator& group() const { return group_; }

 private:
  const TpOptions options_;
  Communicator& group_;
  int64_t& columns_;
  int64_t& rows_;
};

}  // namespace assay::parallel
