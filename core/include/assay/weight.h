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
  int64_t microbatches = 1;
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

  /// `uses` per microbatch as declared by the block list; `on_final` runs in each microbatch when
  /// the last of them has been added.
  void prepare(StepState* step, int uses, Tensor total, std::function<void()> on_final);
  /// The same, transient: total() exists from the first add until release() only, so that memory
  /// holds the gradients that are on their way and no others.
  void prepare(StepState* step, int uses, Shape shape, at::TensorOptions options,
               std::function<void()> on_final);
  void hold();     ///< makes total() now and keeps it
  void release();  ///< forgets the gradient, which has been handed on; frees a transient total

  /// The gradient of one use: same shape as total(), any floating dtype.
  void add(Thunk gradient);

  /// The gradient dy^T x of a linear weight; dy (T, out), x (T, in). Accumulates in place.
  void add_product(Tensor dy, Tensor x);

  const Tensor& total() const { return total_; }
  bool has_gradient() const { return filled_; }

  /// Forgets the step's gradient and half-counted uses (no memory traffic: the next add
  /// overwrites).
  void reset();

  /// A parameter that no use reached in this step reports a zero gradient (unless transient: then
  /// has_gradient() tells).
  void finish();

 private:
  void submit(std::function<void()> run);
  void allocate();
  void count_use();

  StepState* step_ = nullptr;
  int uses_ = 0;
  int seen_ = 0;
  bool filled_ = false;
  bool transient_ = false;
  Shape shape_;
  at::TensorOptions options_;
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
