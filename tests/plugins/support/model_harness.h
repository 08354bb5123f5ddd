// ModelHarness: a whole model on one rank with weights of its own, as plain as a test can have it;
// forward through any stack of Ops, gradients through sinks.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <numeric>
#include <vector>

#include "assay/model.h"

namespace assay::test {

/// Seeded draws that do not touch the process's generator.
class Random {
 public:
  explicit Random(uint64_t seed) : generator_(at::detail::createCPUGenerator(seed)) {}

  Tensor normal(const Shape& shape, at::ScalarType dtype = at::kFloat) {
    return at::randn(shape, generator_, at::TensorOptions(dtype));
  }
  Tensor ids(const Shape& shape, int64_t vocab) {
    return at::randint(vocab, shape, generator_, at::TensorOptions(at::kLong));
  }
  /// As Init says, by the quantile of the normal.
  Tensor draw(const Shape& shape, const Init& init, at::ScalarType dtype) {
    if (init.kind == Init::Kind::constant) return at::full(shape, init.mean, dtype);
    const Tensor unit = at::rand(shape, generator_, at::TensorOptions(at::kDouble));
    const bool cut = init.kind == Init::Kind::truncated_normal;
    const double inside = cut ? std::erf(init.cut / std::sqrt(2.0)) : 1.0;
    const Tensor normal = unit.mul(2).sub(1).mul(inside).erfinv().mul(std::sqrt(2.0));
    return normal.mul(init.std).add(init.mean).to(dtype);
  }

 private:
  at::Generator generator_;
};

class ModelHarness {
 public:
  ModelHarness(const Model& model, at::ScalarType dtype, uint64_t seed = 1)
      : model_(model), specs_(model.parameters()), blocks_(model.blocks()) {
    Random random(seed);
    for (const ParameterSpec& spec : specs_) {
      placements_.emplace_back(spec);
      tensors_.push_back(random.draw(spec.shape, spec.init, dtype));
      sinks_.emplace_back();
    }
    reset();
  }

  std::vector<ParameterSpec>& specs() { return specs_; }
  std::vector<Tensor>& tensors() { return tensors_; }
  Tensor& tensor(const std::string& name) { return tensors_[index(name)]; }
  const Tensor& gradient(size_t parameter) const { return sinks_[parameter].total(); }

  size_t index(const std::string& name) const {
    for (size_t i = 0; i < specs_.size(); ++i) {
      if (specs_[i].name == name) return i;
    }
    ADD_FAILURE() << "no parameter " << name;
    return 0;
  }

  /// Forgets all gradients.
  void reset() {
    for (size_t i = 0; i < sinks_.size(); ++i) {
      int uses = 0;
      for (const BlockSpec& block : blocks_) {
        uses += static_cast<int>(std::count(block.weights.begin(), block.weights.end(), i));
      }
      sinks_[i].prepare(&step_, uses, at::zeros_like(tensors_[i]), [] {});
    }
  }

  /// Output of the last layer (B, S, D), with a graph.
  Tensor hidden(Ops& ops, const BlockInput& batch) { return run(ops, batch, blocks_.size() - 1); }
  /// Sum of the cross entropy, with a graph.
  Tensor loss(Ops& ops, const BlockInput& batch) { return run(ops, batch, blocks_.size()); }

 private:
  Tensor run(Ops& ops, BlockInput batch, size_t blocks) {
    batch.x = at::empty({0}, tensors_[0].options()).requires_grad_();
    for (size_t b = 0; b < blocks; ++b) {
      std::vector<Weight> weights;
      for (const int w : blocks_[b].weights) {
        const auto i = static_cast<size_t>(w);
        weights.push_back({&placements_[i], tensors_[i], {}, &sinks_[i]});
      }
      batch.x = model_.forward(blocks_[b], batch, weights, ops);
    }
    return batch.x;
  }

  const Model& model_;
  std::vector<ParameterSpec> specs_;
  const std::vector<BlockSpec> blocks_;
  std::deque<ParameterPlacement> placements_;
  std::vector<Tensor> tensors_;
  std::deque<GradientSink> sinks_;
  StepState step_;
};

}  // namespace assay::test
