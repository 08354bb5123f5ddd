// Two primitives: gather with product, product with scatter; each is the other's gradient.
#include "async_tp.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>

#include "../tp/tp_ops.h"
#include "assay/plugin.h"
#include "assay/primitive.h"
#include "exchange.h"

namespace assay::parallel {
namespace {

Tensor rows(const Tensor& x) { return x.reshape({-1, x.size(-1)}); }

class AsyncTpOps final : public TpOps {
 public:
  AsyncTpOps(std::unique_ptr<Ops> next, int64_t pieces, const RankContext& context)
      : TpOps(std::move(next), TpOptions{}, context),
        pieces_(pieces),
        gathers_(context.counters["async_tp.gathers"]),
        scatters_(context.counters["async_tp.scatters"]) {}

 protected:
  Tensors column(const Tensor& x, std::span<const Weight> weights) override {
    const std::vector<Weight> w(weights.begin(), weights.end());
    return primitive(
        {x},
        [&](const Tensors& in, Tensors& saved) {
          saved = {in[0]};
          return gathered_products(in[0], w);
        },
        [this, w](const Tensors& saved, const Tensors& dy) {
          const Tensor whole = gathered(saved[0]);
          for (size_t i = 0; i < w.size(); ++i) {
            if (dy[i].defined()) w[i].sink->add_product(rows(dy[i]), rows(whole));
          }
          return Tensors{scattered_inputs(saved[0].size(kSequence), dy, w)};
        });
  }

  Tensors row(const Tensor& x, std::span<const Weight> weights) override {
    Tensors out;
    for (const Weight& weight : weights) out.push_back(scattered_product(x, weight));
    return out;
  }

 private:
  // y_i = all_gather(x) W_i^T
  Tensors gathered_products(const Tensor& x, const std::vector<Weight>& w) {
    const at::NoGradGuard no_grad;
    ++gathers_;
    Tensors out;
    for (const Weight& weight : w) {
      out.push_back(
          at::empty({x.size(0), x.size(1) * group().size(), weight.tensor.size(0)}, x.options()));
    }
    gather_in_pieces(x, pieces_, group(), [&](const Piece& piece, const Tensor& part) {
      for (size_t i = 0; i < w.size(); ++i) {
        out[i].narrow(kSequence, piece.begin, piece.size).copy_(at::matmul(part, w[i].tensor.t()));
      }
    });
    return out;
  }

  Tensor gathered(const Tensor& x) {
    const at::NoGradGuard no_grad;
    Tensor whole = at::empty({x.size(0), x.size(1) * group().size(), x.size(2)}, x.options());
    gather_in_pieces(x, pieces_, group(), [&](const Piece& piece, const Tensor& part) {
      whole.narrow(kSequence, piece.begin, piece.size).copy_(part);
    });
    return whole;
  }

  // reduce_scatter(sum over i of dy_i W_i)
  Tensor scattered_inputs(int64_t part, const Tensors& dy, const std::vector<Weight>& w) {
    const at::NoGradGuard no_grad;
    ++scatters_;
    return scatter_in_pieces(part, pieces_, group(), [&](const Piece& piece) {
      Tensor sum;
      for (size_t i = 0; i < w.size(); ++i) {
        if (!dy[i].defined()) continue;
        const Tensor share =
            at::matmul(dy[i].narrow(kSequence, piece.begin, piece.size), w[i].tensor);
        sum = sum.defined() ? sum.add(share) : share;
      }
      return sum;
    });
  }

  // y = reduce_scatter(x W^T)
  Tensor scattered_product(const Tensor& x, const Weight& weight) {
    return primitive(
        {x},
        [&](const Tensors& in, Tensors& saved) {
          const at::NoGradGuard no_grad;
          ++scatters_;
          saved = {in[0]};
          const Tensor& input = in[0];
          return Tensors{scatter_in_pieces(
              input.size(kSequence) / group().size(), pieces_, group(), [&](const Piece& piece) {
                return at::matmul(input.narrow(kSequence, piece.begin, piece.size),
                                  weight.tensor.t());
              })};
        },
        [this, weight](const Tensors& saved, const Tensors& dy) {
          const at::NoGradGuard no_grad;
          ++gathers_;
          const Tensor& x = saved[0];
          Tensor dx = at::empty_like(x);
          Tensor whole = at::empty({x.size(0), x.size(1), dy[0].size(2)}, dy[0].options());
          gather_in_pieces(dy[0], pieces_, group(), [&](const Piece& piece, const Tensor& part) {
            whole.narrow(kSequence, piece.begin, piece.size).copy_(part);
            dx.narrow(kSequence, piece.begin, piece.size).copy_(at::matmul(part, weight.tensor));
          });
          weight.sink->add_product(rows(whole), rows(x));
          return Tensors{dx};
        })[0];
  }

  const int64_t pieces_;
  int64_t& gathers_;
  int64_t& scatters_;
};

}  // namespace

std::unique_ptr<Ops> AsyncTp::wrap_ops(std::unique_ptr<Ops> next, const RankContext& context) {
  return std::make_unique<AsyncTpOps>(std::move(next), options_.pieces, context);
}

}  // namespace assay::parallel

ASSAY_PLUGIN(registrar) {
  const std::string products = "it multiplies piece by piece, past the layers below it";
  registrar.add<assay::parallel::AsyncTp>(
      {.name = "async_tp",
       .summary = "tensor parallelism with gathers and scatters in pieces between products",
       .reference = "arXiv:2410.06511",
       .provides = {"meta.safe"},
       .conflicts = {{"precision/float8", products},
                     {"compile/fused", products},
                     {"memory/selective_op", "it counts linear weights, which " + products}},
       .rules = {{"R-ASYNC", "mesh.tp > 1", "with one rank there is nothing to overlap"},
                 {"R-TPHEADS", "facts.heads % mesh.tp == 0 and facts.kv_heads % mesh.tp == 0",
                  "heads cannot be cut: mesh.tp must divide the heads and the kv_heads of the "
                  "model"},
                 {"R-TPFFN", "facts.ffn % mesh.tp == 0", "mesh.tp must divide the ffn width"},
                 {"R-SPSEQ", "model.seq_len % (mesh.tp * mesh.cp * pieces) == 0",
                  "mesh.tp times mesh.cp times pieces must divide model.seq_len"}},
       .dims = {"tp"}});
}
