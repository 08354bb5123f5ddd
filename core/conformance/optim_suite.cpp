// Optimizers: a pure rule over whatever slices of parameters it is given.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include "assay/communicator.h"
#include "assay/optimizer.h"
#include "core/conformance/subject.h"

namespace assay::conformance {
namespace {

/// A matrix and a norm scale, as a model has them.
std::vector<ParameterInfo> small_model(at::ScalarType dtype = at::kFloat) {
  const std::vector<AxisSpec> axes{{Axis::ffn, 1}, {Axis::hidden, 1}};
  return {{.name = "model.layers.0.mlp.up_proj.weight",
           .shape = {16, 8},
           .axes = axes,
           .role = ParameterRole::matrix,
           .shard_shape = {16, 8},
           .dtype = dtype},
          {.name = "model.norm.weight",
           .shape = {8},
           .axes = {{Axis::hidden, 1}},
           .role = ParameterRole::norm,
           .shard_shape = {8},
           .dtype = dtype}};
}

/// Deterministic values in (-1, 1) that depend on `salt`.
Tensor wave(const Shape& shape, double salt, const at::TensorOptions& options) {
  int64_t numel = 1;
  for (const int64_t n : shape) numel *= n;
  return at::arange(numel, at::kDouble).mul(0.7).add(salt).sin().reshape(shape).to(options);
}

Shape slot_shape(const StateSlot& slot, const ParameterInfo& info) {
  if (slot.shape.kind == SlotShape::scalar) return {};
  if (slot.shape.kind == SlotShape::same) return info.shard_shape;
  const int64_t n = info.shape.at(static_cast<size_t>(slot.shape.dim));
  return {n, n};
}

/// One optimizer with its shards, stepped with known gradients.
class OptimBench {
 public:
  OptimBench(const Subject& s, const std::vector<ParameterInfo>& model,
             const at::TensorOptions& options = at::kFloat)
      : optimizer_(s.create<Optimizer>()), options_(options) {
    optimizer_->check(model);
    double salt = 0;
    for (const ParameterInfo& info : model) {
      ParameterShard& shard = shards_.emplace_back();
      shard.name = info.name;
      shard.weight = shard.master = wave(info.shard_shape, salt += 1, options);
      shard.decay = info.shape.size() > 1;
      for (const StateSlot& slot : optimizer_->state_spec(info)) {
        const auto dtype = options.dtype() == at::kDouble ? at::kDouble : slot.dtype;
        shard.state.push_back(at::zeros(slot_shape(slot, info), options.dtype(dtype)));
      }
    }
  }

  void step(int64_t number, double lr = 0.01) {
    for (size_t i = 0; i < shards_.size(); ++i) {
      ParameterShard& shard = shards_[i];
      shard.grad = wave(shard.weight.sizes().vec(),
                        10.0 * static_cast<double>(i) + static_cast<double>(number), options_);
    }
    run(number, lr);
  }
  void run(int64_t number, double lr = 0.01) {
    const at::NoGradGuard no_grad;
    StepContext context{.step = number, .lr = lr};
    context.group = [this](const ParameterShard&) -> Communicator& { return *solo_; };
    optimizer_->step(shards_, context);
  }
  std::vector<ParameterShard>& shards() { return shards_; }

 private:
  std::unique_ptr<Optimizer> optimizer_;
  at::TensorOptions options_;
  std::vector<ParameterShard> shards_;
  std::shared_ptr<Communicator> solo_ = solo_communicator({.name = "solo", .ranks = {0}});
};

void expect_same(const OptimBench& left, const OptimBench& right, const char* what) {
  auto& a = const_cast<OptimBench&>(left).shards();
  auto& b = const_cast<OptimBench&>(right).shards();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(at::equal(a[i].weight, b[i].weight)) << what << ": weight of " << a[i].name;
    for (size_t k = 0; k < a[i].state.size(); ++k) {
      EXPECT_TRUE(at::equal(a[i].state[k], b[i].state[k])) << what << ": state of " << a[i].name;
    }
  }
}

void equal_input_gives_equal_bits(const Subject& s) {
  OptimBench first(s, small_model()), second(s, small_model());
  for (int64_t step = 1; step <= 20; ++step) {
    first.step(step);
    second.step(step);
  }
  expect_same(first, second, "two runs");
}

void agrees_with_double_precision(const Subject& s) {
  OptimBench single(s, small_model());
  OptimBench exact(s, small_model(at::kDouble), at::kDouble);
  for (int64_t step = 1; step <= 20; ++step) {
    single.step(step);
    exact.step(step);
  }
  for (size_t i = 0; i < exact.shards().size(); ++i) {
    const Tensor gap =
        single.shards()[i].weight.to(at::kDouble).sub(exact.shards()[i].weight).abs();
    // 20 steps of at most 0.01 each, relative error of a few fp32 roundings per step; a method
    // that normalises in fp32 internally (Muon: bf16 there) declares no bitwise promise.
    EXPECT_LT(gap.max().item<double>(), 5e-3) << exact.shards()[i].name;
  }
}

void moves_finite_weights(const Subject& s) {
  OptimBench bench(s, small_model());
  const Tensor before = bench.shards()[0].weight.clone();
  for (int64_t step = 1; step <= 3; ++step) bench.step(step);
  for (const ParameterShard& shard : bench.shards()) {
    EXPECT_TRUE(shard.weight.isfinite().all().item<bool>()) << shard.name;
  }
  EXPECT_FALSE(at::equal(before, bench.shards()[0].weight)) << "three steps changed nothing";
}

void rate_zero_keeps_weights(const Subject& s) {
  OptimBench bench(s, small_model());
  const Tensor before = bench.shards()[0].weight.clone();
  bench.step(1, 0.0);
  EXPECT_TRUE(at::equal(before, bench.shards()[0].weight))
      << "everything that changes weights, decay included, is times lr";
}

void missing_gradient_is_skipped(const Subject& s) {
  OptimBench bench(s, small_model());
  bench.step(1);
  std::vector<Tensor> before;
  for (const ParameterShard& shard : bench.shards()) {
    before.push_back(shard.weight.clone());
    for (const Tensor& t : shard.state) before.push_back(t.clone());
  }
  for (ParameterShard& shard : bench.shards()) shard.grad = Tensor();
  bench.run(2);
  size_t at = 0;
  for (const ParameterShard& shard : bench.shards()) {
    EXPECT_TRUE(at::equal(shard.weight, before[at++])) << shard.name;
    for (const Tensor& t : shard.state) EXPECT_TRUE(at::equal(t, before[at++])) << shard.name;
  }
}

void keeps_the_declared_state(const Subject& s) {
  OptimBench bench(s, small_model());
  std::vector<const void*> data;
  for (const ParameterShard& shard : bench.shards()) {
    data.push_back(shard.weight.const_data_ptr());
    for (const Tensor& t : shard.state) data.push_back(t.const_data_ptr());
  }
  const auto spec = s.create<Optimizer>()->state_spec(small_model()[0]);
  bench.step(1);
  size_t at = 0;
  for (const ParameterShard& shard : bench.shards()) {
    EXPECT_EQ(shard.weight.const_data_ptr(), data[at++]) << "weights are updated in place";
    for (const Tensor& t : shard.state) {
      EXPECT_EQ(t.const_data_ptr(), data[at++]) << "state is updated in place";
    }
  }
  ASSERT_EQ(bench.shards()[0].state.size(), spec.size());
  for (size_t k = 0; k < spec.size(); ++k) {
    EXPECT_EQ(bench.shards()[0].state[k].scalar_type(), spec[k].dtype) << spec[k].name;
  }
}

void resumes_bitwise(const Subject& s) {
  OptimBench through(s, small_model()), saved(s, small_model()), resumed(s, small_model());
  for (int64_t step = 1; step <= 5; ++step) {
    through.step(step);
    saved.step(step);
  }
  for (size_t i = 0; i < saved.shards().size(); ++i) {
    resumed.shards()[i].weight.copy_(saved.shards()[i].weight);
    for (size_t k = 0; k < saved.shards()[i].state.size(); ++k) {
      resumed.shards()[i].state[k].copy_(saved.shards()[i].state[k]);
    }
  }
  for (int64_t step = 6; step <= 10; ++step) {
    through.step(step);
    resumed.step(step);
  }
  expect_same(through, resumed, "resumed");
}

void slice_of_call_is_call_of_slice(const Subject& s) {
  if (!s.provides("shard.elementwise")) GTEST_SKIP() << "does not promise shard.elementwise";
  OptimBench whole(s, small_model());
  std::vector<ParameterInfo> half = small_model();
  half[0].shard_shape = {5, 8};  // rows 0-4: no multiple of any vector width
  OptimBench part(s, half);
  part.shards()[0].weight.copy_(whole.shards()[0].weight.narrow(0, 0, 5));
  for (int64_t step = 1; step <= 5; ++step) {
    whole.step(step);
    part.shards()[0].grad = whole.shards()[0].grad.narrow(0, 0, 5).contiguous();
    part.shards()[1].grad = whole.shards()[1].grad;
    part.run(step);
  }
  EXPECT_TRUE(at::equal(part.shards()[0].weight, whole.shards()[0].weight.narrow(0, 0, 5)));
}

void empty_shards_are_fine(const Subject& s) {
  if (!s.provides("shard.elementwise")) GTEST_SKIP() << "does not promise shard.elementwise";
  std::vector<ParameterInfo> model = small_model();
  model[0].shard_shape = {0, 8};
  OptimBench bench(s, model);
  EXPECT_NO_THROW(bench.step(1));
}

void runs_on_meta(const Subject& s) {
  if (!s.provides("meta.safe")) GTEST_SKIP() << "does not promise meta.safe";
  OptimBench bench(s, small_model(), at::TensorOptions(at::kFloat).device(at::kMeta));
  EXPECT_NO_THROW(bench.step(1));
}

}  // namespace

std::vector<Case> optim_cases() {
  constexpr Kind k = Kind::optim;
  return {{k, "EqualInputGivesEqualBits", equal_input_gives_equal_bits},
          {k, "AgreesWithDoublePrecision", agrees_with_double_precision},
          {k, "MovesFiniteWeights", moves_finite_weights},
          {k, "RateZeroKeepsWeights", rate_zero_keeps_weights},
          {k, "MissingGradientIsSkipped", missing_gradient_is_skipped},
          {k, "KeepsTheDeclaredState", keeps_the_declared_state},
          {k, "ResumesBitwise", resumes_bitwise},
          {k, "SliceOfCallIsCallOfSlice", slice_of_call_is_call_of_slice},
          {k, "EmptyShardsAreFine", empty_shards_are_fine},
          {k, "RunsOnMeta", runs_on_meta}};
}

}  // namespace assay::conformance
