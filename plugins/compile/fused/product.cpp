// Products on tensors; see product.h.
#include "product.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "kernel_table.h"

namespace assay::fused {
namespace {

constexpr int64_t kRowStep = 6;    // rows of the register tile
constexpr int64_t kTaskRows = 96;  // their operands stay in the second-level cache
constexpr int64_t kPackGrain = 4;  // panels

template <class T>
Matrix<T> matrix(const at::Tensor& t) {
  TORCH_CHECK(t.stride(0) == 1 || t.stride(1) == 1, "product: one stride must be 1; got ",
              t.strides());
  return {t.const_data_ptr<T>(), t.stride(0), t.stride(1)};
}

template <class T>
at::Tensor pack(const at::Tensor& b) {
  const auto& kernels_of_t = kernels().product<T>();
  const int64_t k = b.size(0), n = b.size(1);
  const at::Tensor packed = at::empty({kernels_of_t.packed_size(k, n)}, at::kFloat);
  const Matrix<T> from = matrix<T>(b);
  float* to = packed.mutable_data_ptr<float>();
  const int64_t panels = (n + kernels_of_t.panel - 1) / kernels_of_t.panel;
  at::parallel_for(0, panels, kPackGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) kernels_of_t.pack(from, k, n, i, to);
  });
  return packed;
}

/// Rows of one task: near kTaskRows, and the tasks a multiple of the threads. No bit depends on it.
int64_t rows_per_task(int64_t rows) {
  const int64_t threads = at::get_num_threads();
  const int64_t tasks = ((rows + kTaskRows - 1) / kTaskRows + threads - 1) / threads * threads;
  const int64_t even = (rows + tasks - 1) / tasks;
  return (even + kRowStep - 1) / kRowStep * kRowStep;
}

template <class Body>
void for_row_tasks(int64_t rows, Body&& body) {
  const int64_t step = rows_per_task(rows);
  at::parallel_for(0, (rows + step - 1) / step, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      body(task * step, std::min(rows, (task + 1) * step));
    }
  });
}

template <class T>
struct Term {
  Matrix<T> a;
  at::Tensor packed;
  int64_t k;
};

/// Rows [begin, end) of the sum into `c`, whose row 0 is row `begin`.
template <class T>
void add_terms(const std::vector<Term<T>>& terms, float* c, int64_t begin, int64_t end, int64_t n,
               bool accumulate) {
  for (const Term<T>& term : terms) {
    const Matrix<T> a{term.a.data + begin * term.a.row, term.a.row, term.a.column};
    kernels().product<T>().multiply(a, term.packed.template const_data_ptr<float>(), c, 0,
                                    end - begin, term.k, n, accumulate);
    accumulate = true;
  }
}

template <class T>
void run(std::span<const Factors> factors, const at::Tensor& c, bool accumulate) {
  std::vector<Term<T>> terms;
  for (const Factors& f : factors) terms.push_back({matrix<T>(f.a), pack<T>(f.b), f.a.size(1)});
  const int64_t n = c.size(1);
  if (c.scalar_type() == at::kFloat) {
    float* out = c.mutable_data_ptr<float>();
    for_row_tasks(c.size(0), [&](int64_t begin, int64_t end) {
      add_terms(terms, out + begin * n, begin, end, n, accumulate);
    });
    return;
  }
  TORCH_CHECK(!accumulate, "product: only an fp32 result can be added to");
  T* out = c.mutable_data_ptr<T>();
  for_row_tasks(c.size(0), [&](int64_t begin, int64_t end) {
    const int64_t size = (end - begin) * n;
    const auto sum = c10::GetCPUAllocator()->allocate(static_cast<size_t>(size) * sizeof(float));
    auto* wide = static_cast<float*>(sum.get());
    add_terms(terms, wide, begin, end, n, false);
    kernels().product<T>().round(wide, out + begin * n, size);
  });
}

}  // namespace

bool own_products(at::ScalarType dtype) {
  static const bool measured = std::string_view(kernels().capability) == "AVX2";
  return measured && (dtype == at::kFloat || dtype == at::kBFloat16);
}

void sum_of_products(std::span<const Factors> terms, const at::Tensor& c, bool accumulate) {
  if (c.numel() == 0) return;
  if (terms[0].a.scalar_type() == at::kFloat) return run<float>(terms, c, accumulate);
  run<c10::BFloat16>(terms, c, accumulate);
}

void multiply_into(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c, bool accumulate) {
  if (a.scalar_type() == at::kBFloat16 && own_products(at::kBFloat16)) {
    const Factors term{a, b};
    return sum_of_products({&term, 1}, c, accumulate);
  }
  at::Tensor out = c;
  accumulate ? out.addmm_(a, b) : at::mm_out(out, a, b);
}

}  // namespace assay::fused
