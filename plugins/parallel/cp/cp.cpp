// The strategy, its layer of the ops stack, and its registration.
#include "cp.h"

#include <ATen/core/Tensor.h>

#include "assay/error.h"
#include "assay/plugin.h"
#include "assay/precision.h"
#include "assay/primitive.h"
#include "exchange.h"
#include "ring_operator.h"

namespace assay::parallel {
namespace {

std::unique_ptr<Exchange> make_exchange(const std::string& method, const Surroundings& around) {
  if (method == "ring") return make_ring(around);
  if (method == "ulysses") return make_ulysses(around);
  return make_all_gather(around);
}

class CpOps final : public OpsLayer {
 public:
  CpOps(std::unique_ptr<Ops> below, const CpOptions& options, const RankContext& context)
      : OpsLayer(std::move(below)),
        exchange_(make_exchange(options.method, {.next = next(),
                                                 .group = context.groups(MeshDim::cp),
                                                 .reduce = context.precision.dtypes().reduce,
                                                 .headtail = options.balance == "headtail",
                                                 .messages = context.counters["cp.messages"],
                                                 .work = context.counters["cp.work"]})) {}

  bool masks_documents() const override { return true; }

  AttentionPart attention_part(const Tensor& q, const Tensor& k, const Tensor& v,
                               const AttentionSpec& spec) override {
    if (!spec.causal) throw Error("[R-CPMASK] parallel/cp serves causal attention only");
    AttentionPart part;
    const Tensors out = primitive(
        {q, k, v},
        [&](const Tensors& in, Tensors& saved) {
          part = exchange_->forward({in[0], in[1], in[2]}, spec, saved);
          return Tensors{part.out};
        },
        [exchange = exchange_.get(), spec](const Tensors& saved, const Tensors& dy) {
          const auto [dq, dk, dv] = exchange->backward(saved, dy[0].contiguous(), spec);
          return Tensors{dq, dk, dv};
        });
    return {out[0], part.lse};
  }

 private:
  const std::unique_ptr<Exchange> exchange_;
};

}  // namespace

std::vector<int64_t> Cp::tokens(int64_t seq_len, const Mesh& mesh) const {
  const Sequence sequence(seq_len, mesh.degree(MeshDim::cp), options_.balance == "headtail");
  return sequence.places(mesh.coordinate(MeshDim::cp));
}

std::unique_ptr<Ops> Cp::wrap_ops(std::unique_ptr<Ops> next, const RankContext& context) {
  return std::make_unique<CpOps>(std::move(next), options_, context);
}

}  // namespace assay::parallel

ASSAY_PLUGIN(registrar) {
  assay::parallel::register_ring_operator();
  registrar.add<assay::parallel::Cp>(
      {.name = "cp",
       .summary = "context parallelism: gathered keys, ring attention or exchanged heads",
       .reference = "arXiv:2310.01889",
       .provides = {"meta.safe"},
       .rules =
           {{"R-CPSEQ",
             "mesh.cp == 1 or model.seq_len % (2 * mesh.cp) == 0 or "
             "(balance == 'none' and model.seq_len % mesh.cp == 0)",
             "every rank holds as many tokens: mesh.cp must divide model.seq_len, with balance "
             "headtail twice mesh.cp"},
            {"R-CPHEADS",
             "method != 'ulysses' or (facts.heads % (mesh.tp * mesh.cp) == 0 and "
             "facts.kv_heads % (mesh.tp * mesh.cp) == 0)",
             "heads are exchanged whole: mesh.tp times mesh.cp must divide the heads and the "
             "kv_heads of the model"},
            {"R-CPMASK",
             "method != 'ring' or not defined(model.attention) or "
             "model.attention == 'softmax'",
             "parts of this kind of attention cannot be merged: use method all_gather or "
             "ulysses"}},
       .dims = {"cp"}});
}
