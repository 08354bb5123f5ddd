// Gradients of the collectives, each the transpose of its forward.
#include "assay/collectives.h"

#include "assay/primitive.h"
#include "core/comm/operators.h"

namespace assay {
namespace {

using Linear = std::function<Tensor(const Tensor&)>;

/// y = forward(x) with gradient backward(dy): linear maps, nothing is saved.
Tensor linear_map(const Tensor& x, const Linear& forward, Linear backward) {
  return primitive(
      {x}, [&](const Tensors& in, Tensors&) { return Tensors{forward(in[0])}; },
      [backward = std::move(backward)](const Tensors&, const Tensors& dy) {
        return Tensors{dy[0].defined() ? backward(dy[0]) : Tensor()};
      })[0];
}

constexpr auto kSum = static_cast<int64_t>(ReduceOp::sum);
constexpr auto kMax = static_cast<int64_t>(ReduceOp::max);

Linear identity() {
  return [](const Tensor& x) { return x.view_as(x); };
}

Linear sum_over(int64_t group) {
  return [group](const Tensor& x) { return comm::all_reduce(x, group, kSum); };
}

/// Runs `op` on rows of dimension 0 with `dim` moved there and back.
Tensor along(const Tensor& x, int64_t dim, const Linear& op) {
  if (dim == 0) return op(x);
  return op(x.transpose(0, dim).contiguous()).transpose(0, dim).contiguous();
}

Linear gather_along(int64_t group, int64_t dim) {
  return [=](const Tensor& x) {
    return along(x, dim, [=](const Tensor& t) { return comm::all_gather(t, group); });
  };
}

Linear reduce_scatter_along(int64_t group, int64_t dim) {
  return [=](const Tensor& x) {
    return along(x, dim, [=](const Tensor& t) { return comm::reduce_scatter(t, group); });
  };
}

Linear slice_along(const Communicator& group, int64_t dim) {
  return [n = group.size(), index = group.rank(), dim](const Tensor& x) {
    const int64_t part = x.size(dim) / n;
    return x.narrow(dim, index * part, part).clone(at::MemoryFormat::Contiguous);
  };
}

int64_t checked_dim(const Tensor& x, int64_t dim) {
  const int64_t wrapped = dim < 0 ? dim + x.dim() : dim;
  ASSAY_CHECK(wrapped >= 0 && wrapped < x.dim(), "a collective along dimension " +
                                                     std::to_string(dim) + " of a tensor with " +
                                                     std::to_string(x.dim()));
  return wrapped;
}

void check_divides(const Tensor& x, const Communicator& group, int64_t dim) {
  if (x.size(dim) % group.size() == 0) return;
  throw Error("group '" + group.name() + "' of " + std::to_string(group.size()) +
              " ranks does not divide dimension " + std::to_string(dim) + " of size " +
              std::to_string(x.size(dim)));
}

}  // namespace

Tensor all_reduce(const Tensor& x, Communicator& group, Cotangent cotangent) {
  const Linear sum = sum_over(group.handle());
  return linear_map(x, sum, cotangent == Cotangent::partial ? sum : identity());
}

Tensor replicate(const Tensor& x, Communicator& group) {
  return linear_map(x, identity(), sum_over(group.handle()));
}

Tensor all_gather(const Tensor& x, Communicator& group, int64_t dim, Cotangent cotangent) {
  dim = checked_dim(x, dim);
  return linear_map(x, gather_along(group.handle(), dim),
                    cotangent == Cotangent::partial ? reduce_scatter_along(group.handle(), dim)
                                                    : slice_along(group, dim));
}

Tensor reduce_scatter(const Tensor& x, Communicator& group, int64_t dim) {
  dim = checked_dim(x, dim);
  check_divides(x, group, dim);
  return linear_map(x, reduce_scatter_along(group.handle(), dim),
                    gather_along(group.handle(), dim));
}

Tensor scatter(const Tensor& x, Communicator& group, int64_t dim) {
  dim = checked_dim(x, dim);
  check_divides(x, group, dim);
  return linear_map(x, slice_along(group, dim), gather_along(group.handle(), dim));
}

Tensor all_to_all(const Tensor& x, Communicator& group, std::vector<int64_t> out_splits,
                  std::vector<int64_t> in_splits) {
  const int64_t handle = group.handle();
  const auto move = [handle](std::vector<int64_t> out, std::vector<int64_t> in) -> Linear {
    return [=](const Tensor& t) { return comm::all_to_all(t, handle, out, in); };
  };
  return linear_map(x, move(out_splits, in_splits), move(in_splits, out_splits));
}

Tensor all_reduce_max(const Tensor& x, Communicator& group) {
  return comm::all_reduce(x.detach(), group.handle(), kMax);
}

}  // namespace assay
