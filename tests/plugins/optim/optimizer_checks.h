// Checks that every element-wise optimizer must pass, against an update rule for one scalar in
// double precision.
#pragma once

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "assay/optimizer.h"

namespace assay::optim {

/// A parameter with its own master and state in `dtype`, gradient still undefined.
inline ParameterShard make_shard(const Optimizer& optimizer, const ParameterInfo& info,
                                 const at::Tensor& weight) {
  ParameterShard shard;
  shard.name = info.name;
  shard.weight = shard.master = weight;
  for (const StateSlot& slot : optimizer.state_spec(info)) {
    shard.state.push_back(at::zeros(weight.sizes(), weight.options().dtype(slot.dtype)));
  }
  return shard;
}

inline ParameterInfo info_of(std::string name, const at::Tensor& weight,
                             ParameterRole role = ParameterRole::matrix) {
  ParameterInfo info{.name = std::move(name), .role = role, .dtype = weight.scalar_type()};
  info.shape = info.shard_shape = weight.sizes().vec();
  return info;
}

/// One scalar update: (step, g, w) -> new w; the closure keeps its own state.
using ScalarRule = std::function<double(int64_t step, double lr, double g, double w)>;

/// 20 steps with a changing gradient and rate; the fifth has no gradient.
inline void expect_follows(Optimizer& optimizer, const ScalarRule& rule, bool decay = true) {
  const at::Tensor weight = at::full({1}, 0.7, at::kDouble);
  ParameterShard shard = make_shard(optimizer, info_of("w", weight), weight);
  shard.decay = decay;
  double expected = 0.7;
  for (int64_t step = 1; step <= 20; ++step) {
    const double g = std::cos(0.9 * static_cast<double>(step)),
                 lr = 0.01 / static_cast<double>(step);
    shard.grad = step == 5 ? at::Tensor() : at::full({1}, g, at::kDouble);
    optimizer.step({&shard, 1}, {.step = step, .lr = lr});
    if (step != 5) expected = rule(step, lr, g, expected);
    ASSERT_NEAR(weight.item<double>(), expected, 1e-15 * static_cast<double>(step))
        << "first wrong step: " << step;
  }
}

/// The update of a slice is the slice of the update, in bits.
inline void expect_slices(Optimizer& optimizer) {
  const auto ramp = [](double from) {
    at::Tensor t = at::zeros({24});
    for (int64_t i = 0; i < 24; ++i) t[i] = std::sin(from + static_cast<double>(i));
    return t;
  };
  const at::Tensor whole = ramp(1), part = whole.narrow(0, 8, 9).clone();
  ParameterShard all = make_shard(optimizer, info_of("w", whole), whole);
  ParameterShard slice = make_shard(optimizer, info_of("w", part), part);
  for (int64_t step = 1; step <= 3; ++step) {
    all.grad = ramp(static_cast<double>(10 * step));
    slice.grad = all.grad.narrow(0, 8, 9);
    optimizer.step({&all, 1}, {.step = step, .lr = 0.01});
    optimizer.step({&slice, 1}, {.step = step, .lr = 0.01});
  }
  EXPECT_TRUE(whole.narrow(0, 8, 9).equal(part));
}

/// A step on meta tensors runs and allocates what state_spec says.
inline void expect_meta(Optimizer& optimizer, const Shape& shape = {8, 8}) {
  const at::Tensor weight = at::zeros(shape, at::TensorOptions(at::kFloat).device(at::kMeta));
  ParameterShard shard = make_shard(optimizer, info_of("w", weight), weight);
  shard.grad = at::zeros_like(weight);
  optimizer.step({&shard, 1}, {.step = 1, .lr = 0.1});
  EXPECT_TRUE(shard.master.is_meta());
}

}  // namespace assay::optim
