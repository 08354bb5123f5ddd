// Rotary angles: theta_i = theta^(-2 i / dh), arXiv:2104.09864; scaling of arXiv:2407.21783.
#include "assay/rope_table.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <cmath>
#include <numbers>

namespace assay {

double rope_frequency(const RopeSpec& spec, int64_t i) {
  const double frequency =
      std::pow(spec.theta, -2.0 * static_cast<double>(i) / static_cast<double>(spec.head_dim));
  if (!spec.llama_scaling) return frequency;
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength < spec.original / spec.high) return frequency;
  if (wavelength > spec.original / spec.low) return frequency / spec.factor;
  const double smooth = (spec.original / wavelength - spec.low) / (spec.high - spec.low);
  return (1 - smooth) * frequency / spec.factor + smooth * frequency;
}

namespace {

Tensor frequencies(const RopeSpec& spec, at::Device device) {
  const Tensor host = at::empty({spec.head_dim / 2}, at::kDouble);
  for (int64_t i = 0; i < spec.head_dim / 2; ++i) {
    host.mutable_data_ptr<double>()[i] = rope_frequency(spec, i);
  }
  return host.to(device);
}

bool same(const RopeSpec& a, const RopeSpec& b) {
  return a.head_dim == b.head_dim && a.theta == b.theta && a.llama_scaling == b.llama_scaling &&
         a.factor == b.factor && a.low == b.low && a.high == b.high && a.original == b.original;
}

}  // namespace

std::pair<Tensor, Tensor> RopeTable::get(const Tensor& x, const Positions& positions,
                                         const RopeSpec& spec) {
  const auto dtype = statistics_dtype(x.scalar_type());
  const Tensor& ids = positions.ids;
  const bool same_places =
      ids.defined() ? ids.is_same(ids_)
                    : !ids_.defined() && begin_ == positions.begin && length_ == x.size(1);
  if (!cos_.defined() || !same_places || !same(spec, spec_) || cos_.scalar_type() != dtype ||
      cos_.device() != x.device()) {
    const Tensor places = ids.defined()
                              ? ids.to(at::kDouble)
                              : at::arange(positions.begin, positions.begin + x.size(1),
                                           x.options().dtype(at::kDouble).requires_grad(false));
    const Tensor angles = places.unsqueeze(-1).mul(frequencies(spec, x.device()));
    cos_ = angles.cos().to(dtype);
    sin_ = angles.sin().to(dtype);
    spec_ = spec;
    ids_ = ids;
    begin_ = positions.begin;
    length_ = x.size(1);
  }
  return {cos_, sin_};
}

}  // namespace assay
