// Norm, rotary embedding and SwiGLU as operators: dtype dispatch, threads, fixed orders.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "kernel_table.h"
#include "operator_groups.h"
#include "operators.h"

namespace assay::fused {
namespace {

constexpr int64_t kRowGrain = 16;           // rows of a norm per thread, at least
constexpr int64_t kPartialRows = 64;        // rows whose scale gradients are added up in one run
constexpr int64_t kElementGrain = 1 << 15;  // elements of a pointwise kernel per thread, at least
constexpr int64_t kElementStep = 64;        // cuts fall between whole vectors of every dtype

/// Runs body with a value of the element type of `x`: fp32, fp64 or bf16.
template <class Body>
void with_type(const Tensor& x, Body&& body) {
  switch (x.scalar_type()) {
    case at::kFloat:
      return body(float{});
    case at::kDouble:
      return body(double{});
    case at::kBFloat16:
      return body(c10::BFloat16{});
    default:
      TORCH_CHECK(false, "compile/fused: activations are fp32, fp64 or bf16; got ",
                  x.scalar_type());
  }
}

Tensor rstd_like(const Tensor& x) {
  Shape shape = x.sizes().vec();
  shape.back() = 1;
  return at::empty(shape, x.options().dtype(statistics_dtype(x.scalar_type())));
}

std::tuple<Tensor, Tensor> norm_meta(const Tensor& x, const Tensor&, double) {
  return {at::empty(x.sizes(), x.options()), rstd_like(x)};
}

std::tuple<Tensor, Tensor> norm(const Tensor& input, const Tensor& scale, double eps) {
  const Tensor x = input.contiguous();
  auto [y, rstd] = norm_meta(x, scale, eps);
  const int64_t n = x.size(-1), rows = n == 0 ? 0 : x.numel() / n;
  with_type(x, [&, y = y, rstd = rstd](auto sample) {
    using T = decltype(sample);
    using S = StatisticsOf<T>;
    const T* in = x.const_data_ptr<T>();
    const S* g = scale.const_data_ptr<S>();
    T* out = y.template mutable_data_ptr<T>();
    S* statistics = rstd.template mutable_data_ptr<S>();
    at::parallel_for(0, rows, kRowGrain, [&](int64_t begin, int64_t end) {
      kernels().rows<T>().norm(in + begin * n, g, out + begin * n, statistics + begin, end - begin,
                               n, static_cast<S>(eps));
    });
  });
  return {y, rstd};
}

/// Sum of the rows of `parts` (chunks, n), first to last.
template <class S>
void add_in_order(const Tensor& parts, const Tensor& sum) {
  const int64_t n = parts.size(1);
  const S* from = parts.const_data_ptr<S>();
  S* to = sum.mutable_data_ptr<S>();
  for (int64_t chunk = 0; chunk < parts.size(0); ++chunk, from += n) {
    for (int64_t i = 0; i < n; ++i) to[i] += from[i];
  }
}

std::tuple<Tensor, Tensor> norm_backward_meta(const Tensor&, const Tensor& x, const Tensor& scale,
                                              const Tensor&) {
  return {at::empty(x.sizes(), x.options()), at::empty(scale.sizes(), scale.options())};
}

std::tuple<Tensor, Tensor> norm_backward(const Tensor& gradient, const Tensor& input,
                                         const Tensor& scale, const Tensor& rstd) {
  const Tensor dy = gradient.contiguous(), x = input.contiguous();
  const int64_t n = x.size(-1), rows = n == 0 ? 0 : x.numel() / n;
  const int64_t chunks = (rows + kPartialRows - 1) / kPartialRows;
  const Tensor dx = at::empty(x.sizes(), x.options());
  const Tensor parts = at::zeros({chunks, n}, scale.options());
  const Tensor dscale = at::zeros({n}, scale.options());
  with_type(x, [&](auto sample) {
    using T = decltype(sample);
    using S = StatisticsOf<T>;
    const T *d = dy.const_data_ptr<T>(), *in = x.const_data_ptr<T>();
    const S *g = scale.const_data_ptr<S>(), *statistics = rstd.const_data_ptr<S>();
    T* out = dx.mutable_data_ptr<T>();
    S* part = parts.mutable_data_ptr<S>();
    at::parallel_for(0, chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t chunk = begin; chunk < end; ++chunk) {
        const int64_t row = chunk * kPartialRows, at = row * n;
        kernels().rows<T>().norm_backward(d + at, in + at, g, statistics + row, out + at,
                                          part + chunk * n, std::min(kPartialRows, rows - row), n);
      }
    });
    add_in_order<S>(parts, dscale);
  });
  return {dx, dscale};
}

Tensor rope_meta(const Tensor& x, const Tensor&, const Tensor&, bool) {
  return at::empty(x.sizes(), x.options());
}

Tensor rope(const Tensor& input, const Tensor& cos, const Tensor& sin, bool inverse) {
  const Tensor x = input.contiguous(), y = at::empty(x.sizes(), x.options());
  const int64_t half = cos.size(-1), width = x.size(-1), heads = width / (2 * half);
  const int64_t angles = cos.numel() / half;  // S, or B * S
  with_type(x, [&](auto sample) {
    using T = decltype(sample);
    using S = StatisticsOf<T>;
    const T* in = x.const_data_ptr<T>();
    const S *c = cos.const_data_ptr<S>(), *s = sin.const_data_ptr<S>();
    T* out = y.mutable_data_ptr<T>();
    at::parallel_for(0, x.numel() / width, kRowGrain, [&](int64_t begin, int64_t end) {
      for (int64_t token = begin; token < end; ++token) {
        const int64_t at = token % angles * half;
        kernels().rows<T>().rope(in + token * width, c + at, s + at, out + token * width, heads,
                                 half, inverse ? S(-1) : S(1));
      }
    });
  });
  return y;
}

/// Cuts n elements for threads at multiples of kElementStep.
template <class Body>
void for_elements(int64_t n, Body&& body) {
  const int64_t steps = (n + kElementStep - 1) / kElementStep;
  at::parallel_for(0, steps, kElementGrain / kElementStep, [&](int64_t begin, int64_t end) {
    body(begin * kElementStep, std::min(n, end * kElementStep));
  });
}

Tensor swiglu_meta(const Tensor& gate, const Tensor&) {
  return at::empty(gate.sizes(), gate.options());
}

Tensor swiglu(const Tensor& gate_in, const Tensor& up_in) {
  const Tensor gate = gate_in.contiguous(), up = up_in.contiguous();
  const Tensor out = at::empty(gate.sizes(), gate.options());
  with_type(gate, [&](auto sample) {
    using T = decltype(sample);
    const T *g = gate.const_data_ptr<T>(), *u = up.const_data_ptr<T>();
    T* y = out.mutable_data_ptr<T>();
    for_elements(gate.numel(), [&](int64_t begin, int64_t end) {
      kernels().rows<T>().swiglu(g + begin, u + begin, y + begin, end - begin);
    });
  });
  return out;
}

std::tuple<Tensor, Tensor> swiglu_backward_meta(const Tensor&, const Tensor& gate, const Tensor&) {
  return {at::empty(gate.sizes(), gate.options()), at::empty(gate.sizes(), gate.options())};
}

std::tuple<Tensor, Tensor> swiglu_backward(const Tensor& gradient, const Tensor& gate_in,
                                           const Tensor& up_in) {
  const Tensor dout = gradient.contiguous(), gate = gate_in.contiguous(), up = up_in.contiguous();
  const Tensor dgate = at::empty(gate.sizes(), gate.options());
  const Tensor dup = at::empty(gate.sizes(), gate.options());
  with_type(gate, [&](auto sample) {
    using T = decltype(sample);
    const T *d = dout.const_data_ptr<T>(), *g = gate.const_data_ptr<T>();
    const T* u = up.const_data_ptr<T>();
    T *dg = dgate.mutable_data_ptr<T>(), *du = dup.mutable_data_ptr<T>();
    for_elements(gate.numel(), [&](int64_t begin, int64_t end) {
      kernels().rows<T>().swiglu_backward(d + begin, g + begin, u + begin, dg + begin, du + begin,
                                          end - begin);
    });
  });
  return {dgate, dup};
}

}  // namespace

void add_row_operators(OperatorLibrary& library) {
  library.add<&norm, &norm_meta>("norm(Tensor x, Tensor scale, float eps) -> (Tensor, Tensor)");
  library.add<&norm_backward, &norm_backward_meta>(
      "norm_backward(Tensor dy, Tensor x, Tensor scale, Tensor rstd) -> (Tensor, Tensor)");
  library.add<&rope, &rope_meta>("rope(Tensor x, Tensor cos, Tensor sin, bool inverse) -> Tensor");
  library.add<&swiglu, &swiglu_meta>("swiglu(Tensor gate, Tensor up) -> Tensor");
  library.add<&swiglu_backward, &swiglu_backward_meta>(
      "swiglu_backward(Tensor dout, Tensor gate, Tensor up) -> (Tensor, Tensor)");
}

std::tuple<Tensor, Tensor> call_norm(const Tensor& x, const Tensor& scale, double eps) {
  static const auto op = find_operator<decltype(norm)>("assay_fused::norm");
  return op.call(x, scale, eps);
}
std::tuple<Tensor, Tensor> call_norm_backward(const Tensor& dy, const Tensor& x,
                                              const Tensor& scale, const Tensor& rstd) {
  static const auto op = find_operator<decltype(norm_backward)>("assay_fused::norm_backward");
  return op.call(dy, x, scale, rstd);
}
Tensor call_rope(const Tensor& x, const Tensor& cos, const Tensor& sin, bool inverse) {
  static const auto op = find_operator<decltype(rope)>("assay_fused::rope");
  return op.call(x, cos, sin, inverse);
}
Tensor call_swiglu(const Tensor& gate, const Tensor& up) {
  static const auto op = find_operator<decltype(swiglu)>("assay_fused::swiglu");
  return op.call(gate, up);
}
std::tuple<Tensor, Tensor> call_swiglu_backward(const Tensor& dout, const Tensor& gate,
                                                const Tensor& up) {
  static const auto op = find_operator<decltype(swiglu_backward)>("assay_fused::swiglu_backward");
  return op.call(dout, gate, up);
}

}  // namespace assay::fused
