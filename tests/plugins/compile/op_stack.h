// OpStack: one layer of operations, eager or compile/fused, on seeded inputs and parameters, with
// the gradients of both.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <list>
#include <memory>

#include "assay/ops.h"
#include "fused_ops.h"
#include "operators.h"

namespace assay::fused {

/// Restores the thread count.
class Threads {
 public:
  explicit Threads(int n) : before_(at::get_num_threads()) { at::set_num_threads(n); }
  ~Threads() { at::set_num_threads(before_); }

 private:
  const int before_;
};

/// A stack of one layer of operations and the parameters it reads.
class OpStack {
 public:
  OpStack(bool fused, at::ScalarType dtype, bool own_fp32 = false) : dtype_(dtype) {
    register_operators();
    ops_ = make_eager_ops();
    if (fused)
      ops_ = std::make_unique<FusedOps>(std::move(ops_), FusedParts{.fp32_products = own_fp32},
                                        &calls_);
  }

  Ops& ops() { return *ops_; }
  int64_t calls() const { return calls_; }

  /// The i-th input or parameter: equal numbers in every OpStack, rounded to its dtype.
  Tensor draw(const Shape& shape, uint64_t i) const {
    auto generator = at::detail::createCPUGenerator(100 + i);
    return at::randn(shape, generator, at::TensorOptions(at::kDouble)).to(at::kBFloat16).to(dtype_);
  }
  Tensor input(const Shape& shape, uint64_t i) {
    inputs_.push_back(draw(shape, i).requires_grad_());
    return inputs_.back();
  }
  Weight weight(const Shape& shape, uint64_t i) {
    specs_.push_back({.name = "w", .shape = shape, .axes = {shape.size(), AxisSpec{}}});
    placements_.emplace_back(specs_.back());
    sinks_.emplace_back();
    const auto total = dtype_ == at::kDouble ? at::kDouble : at::kFloat;
    sinks_.back().prepare(&step_, 1, at::zeros(shape, total), [] {});
    return {&placements_.back(), draw(shape, i), {}, &sinks_.back()};
  }

  /// Outputs, then the gradients of all inputs and weights for seeded output gradients.
  Tensors run(const std::function<Tensors(OpStack&)>& body) {
    Tensors results = body(*this);
    const Tensors roots = roots_of(results);
    torch::autograd::backward(roots, seeds_of(roots));
    for (const Tensor& x : inputs_) results.push_back(x.grad());
    for (const GradientSink& sink : sinks_) results.push_back(sink.total());
    for (Tensor& t : results) t = t.detach();
    return results;
  }

  /// The outputs through which gradients flow, and a seeded gradient for each.
  static Tensors roots_of(const Tensors& outputs) {
    Tensors roots;
    for (const Tensor& t : outputs) {
      if (t.requires_grad()) roots.push_back(t);
    }
    return roots;
  }
  Tensors seeds_of(const Tensors& roots) const {
    Tensors seeds;
    for (size_t i = 0; i < roots.size(); ++i) {
      seeds.push_back(draw(roots[i].sizes().vec(), 50 + i).to(roots[i].scalar_type()));
    }
    return seeds;
  }

  void forget_gradients() {
    for (Tensor& x : inputs_) x.mutable_grad() = Tensor();
    for (GradientSink& sink : sinks_) sink.reset();
  }

 private:
  const at::ScalarType dtype_;
  std::unique_ptr<Ops> ops_;
  int64_t calls_ = 0;
  Tensors inputs_;
  std::list<ParameterSpec> specs_;
  std::list<ParameterPlacement> placements_;
  std::list<GradientSink> sinks_;
  StepState step_;
};

}  // namespace assay::fused
