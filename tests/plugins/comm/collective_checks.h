// Every collective against a plain loop over the ranks' inputs; each check throws on a difference.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "assay/communicator.h"

namespace assay::test {

inline const std::vector<at::ScalarType> kDtypes = {
    at::kDouble, at::kFloat, at::kBFloat16, at::kHalf, at::kLong,          at::kInt,
    at::kShort,  at::kChar,  at::kByte,     at::kBool, at::kFloat8_e4m3fn, at::kFloat8_e5m2};

/// Empty, one, odd, below and above the chunk sizes that the tests configure.
inline const std::vector<int64_t> kSizes = {0, 1, 3, 17, 1000, 100'003};

/// Deterministic values that differ per rank and element; small enough to sum in 8-bit floats.
inline at::Tensor input_of(int rank, int64_t numel, at::ScalarType dtype) {
  const at::Tensor index = at::arange(numel, at::kLong).mul(2654435761).add(rank * 40503 + 7);
  const at::Tensor hash = index.bitwise_xor(index.div(8191, "floor")).remainder(61);
  if (dtype == at::kBool) return hash.remainder(2).to(at::kBool);
  if (at::isIntegralType(dtype, /*includeBool=*/false)) return hash.to(dtype);
  return hash.to(at::kDouble).sub(30).div(7).to(at::kFloat).to(dtype);
}

inline void require_equal(const at::Tensor& got, const at::Tensor& want, const std::string& what) {
  const bool same = got.sizes() == want.sizes() && got.scalar_type() == want.scalar_type() &&
                    (got.numel() == 0 || at::equal(got.contiguous().view(at::kByte),
                                                   want.contiguous().view(at::kByte)));
  if (same) return;
  std::ostringstream text;
  text << what << " differs for " << dtype_name(want.scalar_type()) << " x " << want.numel();
  throw std::runtime_error(text.str());
}

/// Left to right over ranks, in fp32 (fp64 for fp64, the type itself for integers), rounded once.
inline at::Tensor reduced(const std::vector<at::Tensor>& parts, ReduceOp op) {
  const at::ScalarType dtype = parts[0].scalar_type();
  const bool small_float = at::isFloatingType(dtype) && dtype != at::kDouble;
  const at::ScalarType wide = small_float ? at::kFloat : dtype;
  at::Tensor total = parts[0].to(wide);
  for (size_t i = 1; i < parts.size(); ++i) {
    const at::Tensor next = parts[i].to(wide);
    if (dtype == at::kBool) {
      total = op == ReduceOp::min ? total.logical_and(next) : total.logical_or(next);
    } else {
      total = op == ReduceOp::sum   ? total.add(next)
              : op == ReduceOp::max ? total.maximum(next)
                                    : total.minimum(next);
    }
  }
  return total.to(dtype);
}

inline std::vector<at::Tensor> inputs_of(int n, int64_t numel, at::ScalarType dtype) {
  std::vector<at::Tensor> inputs;
  for (int rank = 0; rank < n; ++rank) inputs.push_back(input_of(rank, numel, dtype));
  return inputs;
}

inline void check_all_reduce(Communicator& group, int64_t numel, at::ScalarType dtype) {
  const auto inputs = inputs_of(group.size(), numel, dtype);
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min}) {
    at::Tensor x = inputs[static_cast<size_t>(group.rank())].clone();
    group.all_reduce(x, op).wait();
    require_equal(x, reduced(inputs, op), std::string("all_reduce ") + name_of(op));
  }
}

inline void check_all_gather(Communicator& group, int64_t numel, at::ScalarType dtype) {
  const auto inputs = inputs_of(group.size(), numel, dtype);
  at::Tensor out = at::zeros({numel * group.size()}, dtype);
  group.all_gather(out, inputs[static_cast<size_t>(group.rank())]).wait();
  std::vector<at::Tensor> bytes;
  for (const at::Tensor& input : inputs) bytes.push_back(input.view(at::kByte));
  require_equal(out.view(at::kByte), at::cat(bytes), "all_gather");
}

inline void check_reduce_scatter(Communicator& group, int64_t numel, at::ScalarType dtype) {
  const auto inputs = inputs_of(group.size(), numel * group.size(), dtype);
  std::vector<at::Tensor> parts;
  for (const at::Tensor& input : inputs) {
    parts.push_back(input.narrow(0, group.rank() * numel, numel));
  }
  at::Tensor out = at::zeros({numel}, dtype);
  group.reduce_scatter(out, inputs[static_cast<size_t>(group.rank())]).wait();
  require_equal(out, reduced(parts, ReduceOp::sum), "reduce_scatter");
}

/// Rank r sends (r + 2 * destination) % 3 * `unit` rows of two elements to each destination.
inline void check_all_to_all(Communicator& group, int64_t unit, at::ScalarType dtype) {
  const int n = group.size();
  const auto rows = [&](int from, int to) { return (from + 2 * to) % 3 * unit; };
  const auto input_rows = [&](int rank) {
    int64_t sum = 0;
    for (int to = 0; to < n; ++to) sum += rows(rank, to);
    return sum;
  };
  std::vector<int64_t> out_splits, in_splits;
  std::vector<at::Tensor> want;
  for (int peer = 0; peer < n; ++peer) {
    in_splits.push_back(rows(group.rank(), peer));
    out_splits.push_back(rows(peer, group.rank()));
    int64_t before = 0;
    for (int to = 0; to < group.rank(); ++to) before += rows(peer, to);
    want.push_back(input_of(peer, input_rows(peer) * 2, dtype)
                       .view({input_rows(peer), 2})
                       .narrow(0, before, out_splits.back())
                       .contiguous()
                       .view(at::kByte));
  }
  const int64_t in_rows = input_rows(group.rank());
  const at::Tensor in = input_of(group.rank(), in_rows * 2, dtype).view({in_rows, 2});
  int64_t out_rows = 0;
  for (const int64_t split : out_splits) out_rows += split;
  at::Tensor out = at::zeros({out_rows, 2}, dtype);
  group.all_to_all(out, in, out_splits, in_splits).wait();
  require_equal(out.view(at::kByte), at::cat(want), "all_to_all");
}

inline void check_broadcast(Communicator& group, int64_t numel, at::ScalarType dtype) {
  for (int root = 0; root < group.size(); ++root) {
    at::Tensor x = input_of(group.rank(), numel, dtype);
    group.broadcast(x, root).wait();
    require_equal(x, input_of(root, numel, dtype), "broadcast");
  }
}

/// Each rank sends to the next and receives from the one before, twice, receiving first.
inline void check_messages(Communicator& group, int64_t numel, at::ScalarType dtype) {
  const int n = group.size();
  const int next = (group.rank() + 1) % n, before = (group.rank() + n - 1) % n;
  at::Tensor first = at::zeros({numel}, dtype), second = at::zeros({numel}, dtype);
  Work receive_first = group.recv(first, before), receive_second = group.recv(second, before);
  Work send_first = group.send(input_of(group.rank(), numel, dtype), next);
  Work send_second = group.send(input_of(group.rank() + n, numel, dtype), next);
  receive_second.wait();
  receive_first.wait();
  send_first.wait();
  send_second.wait();
  require_equal(first, input_of(before, numel, dtype), "first message");
  require_equal(second, input_of(before + n, numel, dtype), "second message");
}

inline void check_everything(Communicator& group, const std::vector<at::ScalarType>& dtypes,
                             const std::vector<int64_t>& sizes) {
  for (const at::ScalarType dtype : dtypes) {
    for (const int64_t numel : sizes) {
      check_all_reduce(group, numel, dtype);
      check_all_gather(group, numel, dtype);
      check_reduce_scatter(group, numel, dtype);
      check_all_to_all(group, numel, dtype);
      check_broadcast(group, numel, dtype);
      check_messages(group, numel, dtype);
    }
  }
  group.barrier().wait();
}

}  // namespace assay::test
