// The options of compile/fused, and its registration.
#include "fused.h"

#include <algorithm>

#include "assay/error.h"
#include "assay/plugin.h"
#include "fused_ops.h"
#include "operators.h"

namespace assay::fused {

Fused::Fused(const Options& options) : options_(options) {
  for (const std::string& name : options_.components) {
    if (name == "model" || name == "loss") continue;
    throw Error("compile/fused has no component '" + name + "'",
                "allowed in compile.components: model, loss");
  }
}

bool Fused::has(const std::string& component) const {
  const auto& list = options_.components;
  return std::find(list.begin(), list.end(), component) != list.end();
}

std::unique_ptr<Ops> Fused::wrap_ops(std::unique_ptr<Ops> next, const RankContext& context) {
  const FusedParts parts{.model = has("model"),
                         .loss = has("loss"),
                         .products = has("model") && options_.products != "library",
                         .fp32_products = has("model") && options_.products == "own"};
  return std::make_unique<FusedOps>(std::move(next), parts, &context.counters["fused.calls"]);
}

}  // namespace assay::fused

ASSAY_PLUGIN(registrar) {
  assay::fused::register_operators();
  registrar.add<assay::fused::Fused>({.name = "fused",
                                      .summary = "hand-written CPU kernels for the same operations",
                                      .reference = "arXiv:2410.10989",
                                      .provides = {"meta.safe"}});
}
