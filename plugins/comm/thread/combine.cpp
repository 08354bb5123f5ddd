// Collectives as loops over ranks: slow, short and the oracle of the other backends.
#include "combine.h"

#include <ATen/core/grad_mode.h>

namespace assay::comm {
namespace {

at::ScalarType accumulation_dtype(at::ScalarType dtype) {
  return at::isFloatingType(dtype) && dtype != at::kDouble ? at::kFloat : dtype;
}

void add(at::Tensor& total, const at::Tensor& next, ReduceOp op) {
  const bool logical = total.scalar_type() == at::kBool;
  switch (op) {
    case ReduceOp::sum:
      logical ? total.logical_or_(next) : total.add_(next);
      return;
    case ReduceOp::max:
      total.copy_(logical ? total.logical_or(next) : total.maximum(next));
      return;
    case ReduceOp::min:
      total.copy_(logical ? total.logical_and(next) : total.minimum(next));
      return;
  }
}

at::Tensor part(const at::Tensor& flat, int index, int64_t numel) {
  return flat.view(-1).narrow(0, index * numel, numel);
}

at::Tensor reduced(const std::vector<at::Tensor>& parts, ReduceOp op) {
  const at::ScalarType dtype = accumulation_dtype(parts[0].scalar_type());
  at::Tensor total = parts[0].to(dtype, /*non_blocking=*/false, /*copy=*/true);
  for (size_t i = 1; i < parts.size(); ++i) add(total, parts[i].to(dtype), op);
  return total;
}

int64_t rows_before(const std::vector<int64_t>& splits, int index) {
  int64_t sum = 0;
  for (int i = 0; i < index; ++i) sum += splits[static_cast<size_t>(i)];
  return sum;
}

void exchange(const Communicator::Request& request, int rank, const std::vector<Posted>& inputs) {
  for (int peer = 0; peer < static_cast<int>(inputs.size()); ++peer) {
    const auto& theirs = inputs[static_cast<size_t>(peer)];
    const auto& splits = theirs.request.in_splits;
    const int64_t rows = splits[static_cast<size_t>(rank)];
    const at::Tensor source = theirs.input.narrow(0, rows_before(splits, rank), rows);
    request.out.narrow(0, rows_before(request.out_splits, peer), rows).copy_(source);
  }
}

}  // namespace

void combine(const Communicator::Request& request, int rank, const std::vector<Posted>& inputs) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parts;
  switch (request.op) {
    case Collective::all_reduce:
      for (const Posted& posted : inputs) parts.push_back(posted.input);
      request.out.copy_(reduced(parts, request.reduce).view(request.out.sizes()));
      return;
    case Collective::reduce_scatter:
      for (const Posted& posted : inputs) {
        parts.push_back(part(posted.input, rank, request.out.numel()));
      }
      request.out.view(-1).copy_(reduced(parts, request.reduce));
      return;
    case Collective::all_gather:
      for (int peer = 0; peer < static_cast<int>(inputs.size()); ++peer) {
        const at::Tensor& input = inputs[static_cast<size_t>(peer)].input;
        part(request.out, peer, input.numel()).copy_(input.view(-1));
      }
      return;
    case Collective::broadcast:
      request.out.copy_(inputs[static_cast<size_t>(request.peer)].input);
      return;
    case Collective::all_to_all:
      exchange(request, rank, inputs);
      return;
    default:
      return;
  }
}

}  // namespace assay::comm
