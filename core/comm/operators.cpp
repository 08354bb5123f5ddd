// Kernels and registration of the collective operators.
#include "core/comm/operators.h"

#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <numeric>

#include "assay/communicator.h"

namespace assay::comm {
namespace {

Tensor all_reduce_kernel(const Tensor& x, int64_t group, int64_t op) {
  Tensor y = x.clone(at::MemoryFormat::Contiguous);
  Communicator::of(group).all_reduce(y, static_cast<ReduceOp>(op)).wait();
  return y;
}

Tensor with_rows(const Tensor& x, int64_t rows) {
  Shape shape = x.sizes().vec();
  shape[0] = rows;
  return at::empty(shape, x.options());
}

Tensor all_gather_kernel(const Tensor& x, int64_t group) {
  Communicator& communicator = Communicator::of(group);
  Tensor y = with_rows(x, x.size(0) * communicator.size());
  communicator.all_gather(y, x.contiguous()).wait();
  return y;
}

Tensor reduce_scatter_kernel(const Tensor& x, int64_t group) {
  Communicator& communicator = Communicator::of(group);
  Tensor y = with_rows(x, x.size(0) / communicator.size());
  communicator.reduce_scatter(y, x.contiguous()).wait();
  return y;
}

Tensor all_to_all_kernel(const Tensor& x, int64_t group, at::IntArrayRef out_splits,
                         at::IntArrayRef in_splits) {
  Tensor y = with_rows(x, std::accumulate(out_splits.begin(), out_splits.end(), int64_t{0}));
  Communicator::of(group).all_to_all(y, x.contiguous(), out_splits, in_splits).wait();
  return y;
}

/// Registered on first use and kept for good.
void ensure_registered() {
  static const auto& library = *[] {
    auto* made =
        new torch::Library(torch::Library::FRAGMENT, "assay", std::nullopt, __FILE__, __LINE__);
    const auto add = [&](const char* name, const char* schema, auto function) {
      made->def(schema);
      made->impl(name,
                 torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, std::move(function)));
    };
    add("all_reduce", "all_reduce(Tensor x, int group, int op) -> Tensor",
        TORCH_FN(all_reduce_kernel));
    add("all_gather", "all_gather(Tensor x, int group) -> Tensor", TORCH_FN(all_gather_kernel));
    add("reduce_scatter", "reduce_scatter(Tensor x, int group) -> Tensor",
        TORCH_FN(reduce_scatter_kernel));
    add("all_to_all",
        "all_to_all(Tensor x, int group, int[] out_splits, int[] in_splits) -> Tensor",
        TORCH_FN(all_to_all_kernel));
    return made;
  }();
  (void)library;
}

template <class Signature>
auto find(const char* name) {
  ensure_registered();
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace

Tensor all_reduce(const Tensor& x, int64_t group, int64_t op) {
  static const auto handle = find<Tensor(const Tensor&, int64_t, int64_t)>("assay::all_reduce");
  return handle.call(x, group, op);
}

Tensor all_gather(const Tensor& x, int64_t group) {
  static const auto handle = find<Tensor(const Tensor&, int64_t)>("assay::all_gather");
  return handle.call(x, group);
}

Tensor reduce_scatter(const Tensor& x, int64_t group) {
  static const auto handle = find<Tensor(const Tensor&, int64_t)>("assay::reduce_scatter");
  return handle.call(x, group);
}

Tensor all_to_all(const Tensor& x, int64_t group, at::IntArrayRef out_splits,
                  at::IntArrayRef in_splits) {
  static const auto handle =
      find<Tensor(const Tensor&, int64_t, at::IntArrayRef, at::IntArrayRef)>("assay::all_to_all");
  return handle.call(x, group, out_splits, in_splits);
}

}  // namespace assay::comm
