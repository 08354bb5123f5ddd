// Draws each element from its global index, in parallel over rows of the box.
#include "core/train/initialise.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include "core/train/counter_random.h"

namespace assay::train {
namespace {

struct Draw {
  Init init;
  uint64_t key;
  double low, high;  // of the uniform: a truncated normal takes its middle part

  Draw(const Init& i, uint64_t k) : init(i), key(k), low(0), high(1) {
    if (init.kind != Init::Kind::truncated_normal) return;
    low = normal_cdf(-init.cut);
    high = normal_cdf(init.cut);
  }
  double operator()(uint64_t index) const {
    const double u = low + (high - low) * uniform_at(key, index);
    return init.mean + init.std * normal_quantile(u);
  }
};

// Global index of the first element of row `row` of the box (rows = all but the last dimension).
uint64_t row_start(const Shape& shape, const Box& box, int64_t row) {
  uint64_t stride = static_cast<uint64_t>(shape.back());
  uint64_t index = static_cast<uint64_t>(box.begin.back());
  for (size_t d = shape.size() - 1; d-- > 0;) {
    index += static_cast<uint64_t>(box.begin[d] + row % box.size[d]) * stride;
    row /= box.size[d];
    stride *= static_cast<uint64_t>(shape[d]);
  }
  return index;
}

template <class Scalar>
void fill(Tensor& out, const ParameterSpec& spec, const Box& box, const Draw& draw) {
  const int64_t width = box.size.back(), rows = width > 0 ? box.numel() / width : 0;
  auto* data = out.mutable_data_ptr<Scalar>();
  at::parallel_for(
      0, rows, 1 + 4096 / std::max<int64_t>(width, 1), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const uint64_t start = row_start(spec.shape, box, row);
          for (int64_t i = 0; i < width; ++i) {
            data[row * width + i] = static_cast<Scalar>(draw(start + static_cast<uint64_t>(i)));
          }
        }
      });
}

}  // namespace

Tensor initial_value(const ParameterSpec& spec, const Box& box, uint64_t seed, at::ScalarType dtype,
                     at::Device device) {
  const auto options = at::TensorOptions(dtype).device(device);
  if (device.is_meta()) return at::empty(box.size, options);
  if (spec.init.kind == Init::Kind::constant) return at::full(box.size, spec.init.mean, options);
  const Draw draw(spec.init, stream_key(seed, spec.name));
  Tensor host = at::empty(box.size, dtype == at::kDouble ? at::kDouble : at::kFloat);
  if (dtype == at::kDouble) {
    fill<double>(host, spec, box, draw);
  } else {
    fill<float>(host, spec, box, draw);
  }
  return host.to(options);
}

}  // namespace assay::train
