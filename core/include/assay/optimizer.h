// Optimizer: the contract of kind `optim`. A component is a pure update rule; every tensor it
// touches, its own state included, is allocated, sharded and saved by the trainer.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "assay/api.h"
#include "assay/kind.h"
#include "assay/parameter.h"  // ParameterInfo: name, whole shape, axes, role; shard shape and dtype

namespace assay {

class Communicator;

/// Shape of a state tensor: the shard's, n x n with n = the whole parameter's size in `dim`, or ().
struct SlotShape {
  enum Kind { same, square, scalar } kind = same;
  int64_t dim = 0;  ///< read for `square` only
};

/// One state tensor kept beside a parameter.
struct StateSlot {
  std::string name{};                 ///< unique in the rule ("m"); part of the checkpoint format
  at::ScalarType dtype = at::kFloat;  ///< the memory planner counts it byte for byte
  SlotShape shape{};
};

/// The part of one parameter that lives on this rank. Under sharding it may be any slice of the
/// whole, even an empty one; a rule for whole matrices declares that it needs `param.whole`.
struct ParameterShard {
  std::string name;               ///< equal on every rank and in every layout
  at::Tensor weight;              ///< what the model reads: fp32, or bf16 where precision says so
  at::Tensor master;              ///< updated in place: `weight` itself, or beside a bf16 one an
                                  ///< fp32 slot that the trainer rounds into it after step()
  at::Tensor grad;                ///< same shape; undefined if no loss term reached it this step
  std::vector<at::Tensor> state;  ///< one per slot, in the order of state_spec(); zero at first
  double lr_scale = 1.0;          ///< multiplies StepContext::lr
  bool decay = true;              ///< false for norms, biases and other vectors
};

/// What the trainer knows about the update it asks for.
struct StepContext {
  int64_t step;  ///< 1 for the first update; continues after a resume
  double lr;     ///< `optim.lr` after the schedule, before lr_scale
  /// The ranks that hold the other parts of a parameter; a group of one if it is whole.
  std::function<Communicator&(const ParameterShard&)> group{};
};

/// Turns reduced gradients into new weights.
///
/// Called:    once per global batch, under no-grad, after gradients are reduced and clipped.
/// Threads:   one instance per rank, never entered twice at once. Ranks may be threads of one
///            process: keep no mutable static.
/// Ownership: keep nothing between calls but the options. Save, load and resharding follow from
///            state_spec(), so a rule never writes them.
/// Numerics:  equal input gives equal bits, and a sharded call equals the matching slice of an
///            unsharded one. Runs on meta tensors: never branch on what a tensor holds.
/// Smallest:  plain SGD is step() alone.
class ASSAY_API Optimizer {
 public:
  static constexpr Kind kind = Kind::optim;
  virtual ~Optimizer();

  /// Refuses a model or options that do not fit (R-GROUPMATCH, R-MUONDIM): throws Error. Called
  /// once before state_spec() with every parameter of the model, those of other ranks too.
  virtual void check(std::span<const ParameterInfo>) const {}

  /// The tensors kept beside this parameter; the same answer on every rank. Default: none.
  virtual std::vector<StateSlot> state_spec(const ParameterInfo& parameter) const;

  /// Applies one update in place. A shard without gradient keeps its weight and its state.
  virtual void step(std::span<ParameterShard> shards, const StepContext& context) = 0;
};

}  // namespace assay
