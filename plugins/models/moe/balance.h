// Balance: what keeps the experts of a router equally used, over the steps of a run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "assay/model.h"
#include "flavours.h"

namespace assay::models {

/// Per mixture layer on this rank: the bias on the choice of experts, and for each microbatch the
/// tokens that chose each expert and the values of the losses.
///
///   bias  arXiv:2408.15664, once per step, c = tokens of all ranks and microbatches:
///         delta = rate sign(mean(c) - c); bias += delta - mean(delta)  (bias_center)
///   aux   arXiv:2101.03961: weight E sum_i f_i P_i, f_i = c_i / (T k), P_i the mean of the scores,
///         each token's normalised to 1
///   z     arXiv:2202.08906: weight mean(logsumexp(logits)^2)
///
/// aux and z are taken over the T tokens that a rank has of a microbatch, and averaged: their
/// gradient carries 1 / (microbatches * token ranks). They are no part of the loss of the model.
class Balance {
 public:
  explicit Balance(const MoeOptions& options) : options_(options) {}

  /// `layers` of the whole model.
  void prepare(const ModelRun& run, int64_t layers, int64_t experts);

  /// (E), or undefined: no bias, or nothing is prepared.
  Tensor bias(int64_t layer) const;

  /// Notes the counts of a microbatch, writing over what an earlier pass has noted of it. Returns
  /// the gates, whose gradient then carries that of the losses.
  Tensor note(const Routing& routing, int64_t layer, int64_t microbatch) const;

  /// The update; then forgets the counts. Metrics: "moe_load", the largest share of an expert over
  /// the mean, averaged over layers; "moe_aux_loss" and "moe_z_loss", summed over layers.
  void update(const StepHook& hook);

  /// "model.layers.3.mlp.gate.e_score_correction_bias" (E), fp64.
  std::map<std::string, Tensor> buffers() const;

 private:
  void update_bias(const Tensor& counts);

  const MoeOptions options_;
  std::map<int64_t, int64_t> row_of_{};  ///< by layer
  int64_t mixtures_ = 0;                 ///< layers of the whole model with experts
  double share_ = 1.0;                   ///< of a microbatch on one rank
  Tensor bias_{};                        ///< (layers, E) fp64
  Tensor notes_{};                       ///< (layers, microbatches, E + 2) fp64: counts, aux, z
};

}  // namespace assay::models
