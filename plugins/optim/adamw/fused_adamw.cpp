// The update of fused_adamw.h as an operator: dtype dispatch, blocks of work, threads.
#include "fused_adamw.h"

#include <ATen/Parallel.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fused_adamw_loop.h"

namespace assay::optim {
namespace {

constexpr int64_t kBlock = 16384;  // elements of one work item: 448 KiB of fp32 traffic

struct Block {
  size_t shard;
  int64_t begin, end;
};

std::vector<Block> cut_into_blocks(at::TensorList tensors) {
  std::vector<Block> blocks;
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (int64_t at = 0; at < tensors[i].numel(); at += kBlock) {
      blocks.push_back({i, at, std::min(at + kBlock, tensors[i].numel())});
    }
  }
  return blocks;
}

void check(at::TensorList tensors, at::TensorList like, const char* what, bool may_be_bf16) {
  TORCH_CHECK(tensors.size() == like.size(), "fused_adamw: ", tensors.size(), " tensors '", what,
              "' for ", like.size(), " parameters");
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool dtype_fits = tensors[i].scalar_type() == like[i].scalar_type() ||
                            (may_be_bf16 && tensors[i].scalar_type() == at::kBFloat16);
    TORCH_CHECK(dtype_fits, "fused_adamw: '", what, "' of parameter ", i, " has dtype ",
                tensors[i].scalar_type(), "; the master weight has ", like[i].scalar_type());
    TORCH_CHECK(tensors[i].sizes() == like[i].sizes() && tensors[i].is_contiguous(),
                "fused_adamw: '", what, "' of parameter ", i, " has shape ", tensors[i].sizes(),
                " and must be contiguous of shape ", like[i].sizes());
  }
}

template <class T, class G>
void run(const Block& block, const AdamWScalars<T>& s, const at::Tensor& w, const at::Tensor& g,
         const at::Tensor& m, const at::Tensor& q, const at::Tensor* copy) {
  const int64_t n = block.end - block.begin;
  T* weight = w.mutable_data_ptr<T>() + block.begin;
  adamw_loop(weight, static_cast<const G*>(g.const_data_ptr()) + block.begin,
             m.mutable_data_ptr<T>() + block.begin, q.mutable_data_ptr<T>() + block.begin, n, s);
  if (copy) {
    round_loop(weight, static_cast<uint16_t*>(copy->mutable_data_ptr()) + block.begin, n);
  }
}

template <class T>
void run_all(at::TensorList w, at::TensorList g, at::TensorList m, at::TensorList q,
             at::TensorList copies, c10::ArrayRef<double> lr, c10::ArrayRef<double> decay,
             const FusedAdamWStep& step) {
  const auto blocks = cut_into_blocks(w);
  const double correction1 = 1 - std::pow(step.beta1, step.step);
  const double correction2 = 1 - std::pow(step.beta2, step.step);
  at::parallel_for(0, static_cast<int64_t>(blocks.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const size_t p = blocks[i].shard;
      const AdamWScalars<T> s{.keep = static_cast<T>(1 - lr[p] * decay[p]),
                              .lr = static_cast<T>(lr[p]),
                              .beta1 = static_cast<T>(step.beta1),
                              .one_minus_beta1 = static_cast<T>(1 - step.beta1),
                              .beta2 = static_cast<T>(step.beta2),
                              .one_minus_beta2 = static_cast<T>(1 - step.beta2),
                              .correction1 = static_cast<T>(correction1),
                              .correction2 = static_cast<T>(correction2),
                              .eps = static_cast<T>(step.eps)};
      const at::Tensor* copy = copies.empty() ? nullptr : &copies[p];
      if (g[p].scalar_type() == at::kBFloat16) {
        run<T, uint16_t>(blocks[i], s, w[p], g[p], m[p], q[p], copy);
      } else {
        run<T, T>(blocks[i], s, w[p], g[p], m[p], q[p], copy);
      }
    }
  });
}

void fused_cpu(at::TensorList w, at::TensorList g, at::TensorList m, at::TensorList q,
               at::TensorList copies, c10::ArrayRef<double> lr, c10::ArrayRef<double> decay,
               int64_t t, double beta1, double beta2, double eps) {
  if (w.empty()) return;
  check(w, w, "master", false);
  check(g, w, "grad", true);
  check(m, w, "exp_avg", false);
  check(q, w, "exp_avg_sq", false);
  if (!copies.empty()) check(copies, w, "weight", true);
  const FusedAdamWStep step{.step = t, .beta1 = beta1, .beta2 = beta2, .eps = eps};
  switch (w[0].scalar_type()) {
    case at::kFloat:
      return run_all<float>(w, g, m, q, copies, lr, decay, step);
    case at::kDouble:
      return run_all<double>(w, g, m, q, copies, lr, decay, step);
    default:
      TORCH_CHECK(false, "fused_adamw: master weights are fp32 or fp64; got ", w[0].scalar_type());
  }
}

void fused_meta(at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                c10::ArrayRef<double>, c10::ArrayRef<double>, int64_t, double, double, double) {}

struct Lists {
  std::vector<at::Tensor> w, g, m, q, copies;
  std::vector<double> lr, decay;
};

/// The shards of one dtype, with or without a bf16 copy to write.
Lists select(std::span<const FusedAdamWShard> shards, at::ScalarType dtype, bool with_copy) {
  Lists lists;
  for (const FusedAdamWShard& shard : shards) {
    if (shard.master.scalar_type() != dtype || shard.weight.defined() != with_copy) continue;
    lists.w.push_back(shard.master);
    lists.g.push_back(shard.grad);
    lists.m.push_back(shard.exp_avg);
    lists.q.push_back(shard.exp_avg_sq);
    if (with_copy) lists.copies.push_back(shard.weight);
    lists.lr.push_back(shard.lr);
    lists.decay.push_back(shard.weight_decay);
  }
  return lists;
}

}  // namespace

void register_fused_adamw() {
  static auto& library = *new torch::Library(torch::Library::DEF, "assay_adamw", std::nullopt,
                                             __FILE__, __LINE__);  // kept for good
  library.def(
      "fused_(Tensor(a!)[] master, Tensor[] grad, Tensor(b!)[] exp_avg, Tensor(c!)[] exp_avg_sq, "
      "Tensor(d!)[] weight, float[] lr, float[] decay, int step, float beta1, float beta2, "
      "float eps) -> ()");
  library.impl("fused_", torch::dispatch(c10::DispatchKey::CPU, TORCH_FN(fused_cpu)));
  library.impl("fused_", torch::dispatch(c10::DispatchKey::Meta, TORCH_FN(fused_meta)));
}

void fused_adamw(std::span<const FusedAdamWShard> shards, const FusedAdamWStep& step) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("assay_adamw::fused_", "")
                             .typed<decltype(fused_cpu)>();
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const bool with_copy : {false, true}) {
      const Lists l = select(shards, dtype, with_copy);
      if (l.w.empty()) continue;
      op.call(l.w, l.g, l.m, l.q, l.copies, l.lr, l.decay, step.step, step.beta1, step.beta2,
              step.eps);
    }
  }
}

}  // namespace assay::optim
