// Weight and GradientSink: how a primitive reads a parameter and hands back its gradient.
#pragma once

#include <functional>
#include <vector>

#include "assay/api.h"
#include "assay/parameter.h"
#include "assay/tensor.h"

namespace assay {

/// What the schedule announces before each F, B, I or W (design: one per rank).
struct StepState {
  int64_t microbatch = 0;
  bool armed = false;      ///< this microbatch's gradients may start communication
  bool deferring = false;  ///< I: thunks are queued for W instead of run
  std::vector<std::function<void()>> deferred;
};

/// Collects the gradient of one parameter over the uses and microbatches of a step.
///
/// Called: by the backward of a primitive, once per use. In B the thunk runs at once, in I it is
///         queued and runs in W. It must own what it needs (activations, dy), never the weight.
/// Result: total(), in the main-gradient dtype of precision, shape of the local box.
class ASSAY_API GradientSink {
 public:
  using Thunk = std::function<Tensor()>;

  /// `uses` per microbatch as declared by the block list; `on_final` runs when the last of them
  /// has been added in an armed microbatch.
  void prepare(StepState* step, int uses, Tensor total, std::function<void()> on_final);

  /// The gradient of one use: same shape as total(), any floating dtype.
  void add(Thunk gradient);

  /// The gradient dy^T x of a linear weight; dy (T, out), x (T, in). Accumulates in place.
  void add_product(Tensor dy, Tensor x);

  const Tensor& total() const { return total_; }
  bool has_gradient() const { return filled_; }

  /// Forgets the step's gradient (no memory traffic: the next add overwrites).
  void reset();

  /// A parameter that no use reached in this step reports a zero gradient.
  void finish();

 private:
  void submit(std::function<void()> run);
  void count_use();

  StepState* step_ = nullptr;
  int uses_ = 0;
  int seen_ = 0;
  bool filled_ = false;
  Tensor total_;
  std::function<void()> on_final_;
};

/// One parameter as a primitive sees it. The tensor is never an autograd input: it is captured and
/// read when backward runs, so version counters never matter and unsharding is a plain copy.
struct Weight {
  const ParameterPlacement* placement = nullptr;
  Tensor tensor{};  ///< local box in the compute dtype; 1-byte codes where precision gathers those
  Tensor scale{};   ///< of codes; undefined otherwise
  GradientSink* sink = nullptr;

  const ParameterSpec& spec() const { return placement->spec(); }
};

}  // namespace assay
