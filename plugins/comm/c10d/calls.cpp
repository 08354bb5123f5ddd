// One c10d call per collective.
#include "calls.h"

#include <algorithm>

namespace assay::comm {
namespace {

at::Tensor as_bytes(const at::Tensor& tensor) { return tensor.view(-1).view(at::kByte); }

/// Rows to bytes: c10d splits count elements of dimension 0.
std::vector<int64_t> byte_splits(const std::vector<int64_t>& splits, const at::Tensor& tensor) {
  int64_t row = static_cast<int64_t>(tensor.element_size());
  for (const int64_t size : tensor.sizes().slice(1)) row *= size;
  std::vector<int64_t> bytes;
  for (const int64_t rows : splits) bytes.push_back(rows * row);
  return bytes;
}

at::Tensor as_reducible(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kBool:
      return as_bytes(tensor);
    case at::kDouble:
    case at::kFloat:
    case at::kBFloat16:
    case at::kHalf:
    case at::kLong:
    case at::kInt:
    case at::kChar:
    case at::kByte:
      return tensor.view(-1);
    default:
      throw Error("this communicator cannot reduce " + dtype_name(tensor.scalar_type()),
                  "reduce in another dtype, or use comm: shm");
  }
}

/// On bytes 0 and 1, or is the maximum.
c10d::ReduceOp reduce_op(const Communicator::Request& request) {
  const bool any = request.out.scalar_type() == at::kBool && request.reduce == ReduceOp::sum;
  if (any || request.reduce == ReduceOp::max) return c10d::ReduceOp::MAX;
  return request.reduce == ReduceOp::min ? c10d::ReduceOp::MIN : c10d::ReduceOp::SUM;
}

C10dWork all_reduce(c10d::Backend& backend, const Communicator::Request& request) {
  std::vector<at::Tensor> tensors = {as_reducible(request.out)};
  c10d::AllreduceOptions options;
  options.reduceOp = reduce_op(request);
  return backend.allreduce(tensors, options);
}

C10dWork reduce_scatter(c10d::Backend& backend, const Communicator::Request& request) {
  at::Tensor out = as_reducible(request.out), in = as_reducible(request.in);
  c10d::ReduceScatterOptions options;
  options.reduceOp = reduce_op(request);
  return backend._reduce_scatter_base(out, in, options);
}

C10dWork all_to_all(c10d::Backend& backend, const Communicator::Request& request) {
  at::Tensor out = as_bytes(request.out), in = as_bytes(request.in);
  std::vector<int64_t> out_splits = byte_splits(request.out_splits, request.out);
  std::vector<int64_t> in_splits = byte_splits(request.in_splits, request.in);
  return backend.alltoall_base(out, in, out_splits, in_splits);
}

C10dWork broadcast(c10d::Backend& backend, const Communicator::Request& request) {
  std::vector<at::Tensor> tensors = {as_bytes(request.out)};
  c10d::BroadcastOptions options;
  options.rootRank = request.peer;
  return backend.broadcast(tensors, options);
}

}  // namespace

C10dWork start_call(c10d::Backend& backend, const Communicator::Request& request) {
  constexpr int kNoTag = 0;  // messages of a pair keep their order
  std::vector<at::Tensor> tensors;
  at::Tensor out;
  at::Tensor in;
  switch (request.op) {
    case Collective::all_reduce:
      return all_reduce(backend, request);
    case Collective::reduce_scatter:
      return reduce_scatter(backend, request);
    case Collective::all_to_all:
      return all_to_all(backend, request);
    case Collective::broadcast:
      return broadcast(backend, request);
    case Collective::all_gather:
      out = as_bytes(request.out);
      in = as_bytes(request.in);
      return backend._allgather_base(out, in);
    case Collective::send:
      tensors = {as_bytes(request.in)};
      return backend.send(tensors, request.peer, kNoTag);
    case Collective::recv:
      tensors = {as_bytes(request.out)};
      return backend.recv(tensors, request.peer, kNoTag);
    case Collective::barrier:
      return backend.barrier();
  }
  return nullptr;
}

bool is_empty(const Communicator::Request& request) {
  if (request.op == Collective::barrier || request.op == Collective::all_to_all) return false;
  const at::Tensor& tensor = request.out.defined() ? request.out : request.in;
  return tensor.numel() == 0;
}

std::chrono::milliseconds milliseconds(int64_t nanoseconds) {
  constexpr int64_t kNanosecondsPerMillisecond = 1'000'000;
  return std::chrono::milliseconds(std::max<int64_t>(1, nanoseconds / kNanosecondsPerMillisecond));
}

}  // namespace assay::comm
