// The dense MLP of Llama 3, and its registration.
#include "llama3.h"

#include "assay/plugin.h"

namespace assay::models {

std::vector<ParameterSpec> Llama3::mlp_parameters(int64_t layer) const {
  return swiglu_parameters(layer_name(layer) + "mlp.", size().hidden, size().ffn, layer);
}

Tensor Llama3::mlp(const BlockSpec&, const BlockInput&, const Tensor& x, BlockWeights w,
                   Ops& ops) const {
  return swiglu_mlp(ops, x, w);
}

}  // namespace assay::models

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::models::Llama3>(
      {.name = "llama3",
       .summary = "decoder with RMSNorm, grouped-query attention, RoPE and SwiGLU",
       .reference = "arXiv:2407.21783",
       .provides = {"meta.safe", "model.blocks", "model.linear", "model.causal"},
       .rules = {{"R-HEADS", "head_dim > 0 or facts.hidden % facts.heads == 0",
                  "hidden is a multiple of heads unless head_dim is set"},
                 {"R-GQA", "facts.heads % facts.kv_heads == 0",
                  "each key and value head serves the same number of query heads"},
                 {"R-ROPE", "facts.head_dim % 2 == 0", "rope turns pairs of elements"}}});
}
