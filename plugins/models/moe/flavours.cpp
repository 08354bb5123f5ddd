// The table of flavours and the declaration of the options.
#include "flavours.h"

#include <array>

namespace assay::models {
namespace {

struct Flavour {
  const char* name;
  Dimensions size;
  Mixture mixture;
};

// hidden, layers, heads, kv_heads, ffn, vocab, tied; experts, width. tiny and debug are llama3's
// with eight experts of half its width, so that two of them cost what its MLP does; 8x7B is
// arXiv:2401.04088.
constexpr std::array<Flavour, 3> kFlavours = {{
    {"tiny", {128, 4, 4, 2, 384, 0, false}, {8, 192}},
    {"debug", {256, 6, 16, 16, 768, 2048, false}, {8, 384}},
    {"8x7B", {4096, 32, 32, 8, 14336, 32000, false}, {8, 14336}},
}};

const Flavour& flavour_of(const MoeOptions& options) {
  for (const Flavour& flavour : kFlavours) {
    if (options.flavour == flavour.name) return flavour;
  }
  throw Error("model/moe has no flavour '" + options.flavour + "'");
}

}  // namespace

Dimensions dimensions(const MoeOptions& options) {
  return changed(flavour_of(options).size, options);
}

Mixture mixture(const MoeOptions& options) {
  Mixture m = flavour_of(options).mixture;
  if (options.experts > 0) m.experts = options.experts;
  if (options.expert_ffn > 0) m.width = options.expert_ffn;
  m.shared_width = options.shared_experts * m.width;
  return m;
}

RouteSpec route_spec(const MoeOptions& options) {
  const bool sigmoid = options.score == "sigmoid";
  const bool mixtral = !sigmoid && options.top_k > 1;
  return {.top_k = options.top_k,
          .sigmoid = sigmoid,
          .normalise = options.route_norm == "auto" ? mixtral : options.route_norm == "true",
          .scale = options.route_scale,
          .groups = options.groups,
          .limited_groups = options.limited_groups,
          .force_balance = options.force_balance};
}

bool is_mixture(const MoeOptions& options, int64_t layer) {
  if (options.moe_layers == "every_n") return (layer + 1) % options.moe_every == 0;
  if (options.moe_layers == "first_dense") return layer >= options.dense_layers;
  return true;
}

void MoeOptions::declare(OptionTable<MoeOptions>& t) {
  using enum Affects;
  using O = MoeOptions;
  constexpr double kMaxSize = 1 << 20;
  t.add(static_cast<std::string O::*>(&O::flavour), "flavour", numerics, {"tiny", "debug", "8x7B"},
        "row of the size table");
  declare_decoder(t);
  t.add(&O::experts, "experts", numerics, {0, 4096}, "experts of a layer; 0: the flavour's");
  t.add(&O::top_k, "top_k", numerics, {1, 64}, "experts that a token goes to");
  t.add(&O::expert_ffn, "expert_ffn", numerics, {0, kMaxSize},
        "width of an expert; 0: the flavour's");
  t.add(&O::score, "score", numerics, {"softmax", "sigmoid"}, "of the router's logits");
  t.add(&O::route_norm, "route_norm", numerics, {"auto", "true", "false"},
        "gates of a token sum to 1; auto: for softmax with top_k above 1");
  t.add(&O::route_scale, "route_scale", numerics, {0, 1000}, "factor on the gates");
  t.add(&O::groups, "groups", numerics, {1, 4096},
        "equal groups of experts; 1: a token may go to any expert");
  t.add(&O::limited_groups, "limited_groups", numerics, {1, 4096}, "groups that a token may go to");
  t.add(&O::shared_experts, "shared_experts", numerics, {0, 64},
        "experts that every token goes to, as one MLP of so many times the width");
  t.add(&O::moe_layers, "moe_layers", numerics, {"all", "every_n", "first_dense"},
        "layers with experts: all, the last of every moe_every, or all after dense_layers");
  t.add(&O::moe_every, "moe_every", numerics, {1, 4096}, "of every_n");
  t.add(&O::dense_layers, "dense_layers", numerics, {0, 4096}, "of first_dense");
  t.add(&O::balance, "balance", numerics, {"none", "bias", "aux"},
        "how experts get equal shares: nothing, a bias on the choice, or a loss");
  t.add(&O::bias_rate, "bias_rate", numerics, {0, 1}, "step of the bias, of balance bias");
  t.add(&O::bias_center, "bias_center", numerics, {},
        "take the mean off each change of the bias (arXiv:2408.15664 does not)");
  t.add(&O::aux_weight, "aux_weight", numerics, {0, 10}, "of the loss of balance aux");
  t.add(&O::z_weight, "z_weight", numerics, {0, 10}, "of the z-loss on the router's logits");
  t.add(&O::force_balance, "force_balance", numerics, {},
        "round robin instead of the router's choice: for throughput, it trains no router");
  t.add(&O::pad_rows, "pad_rows", numerics, {1, 1024},
        "rows of an expert are padded to a multiple, so that bits do not depend on mesh.ep")
      .unit = "rows";
}

}  // namespace assay::models
