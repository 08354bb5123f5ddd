// Flavours of moe: Mixtral 8x7B and two small ones, and the options that name and change them.
#pragma once

#include "../decoder/options.h"
#include "assay/ops.h"

namespace assay::models {

struct MoeOptions : DecoderOptions {
  int64_t experts = 0;
  int64_t top_k = 2;
  int64_t expert_ffn = 0;
  std::string score = "softmax";
  std::string route_norm = "auto";
  double route_scale = 1.0;
  int64_t groups = 1;
  int64_t limited_groups = 1;
  int64_t shared_experts = 0;
  std::string moe_layers = "all";
  int64_t moe_every = 2;
  int64_t dense_layers = 1;
  std::string balance = "bias";
  double bias_rate = 1e-3;
  bool bias_center = true;
  double aux_weight = 0.01;
  double z_weight = 0.0;
  bool force_balance = false;
  int64_t pad_rows = 16;

  static void declare(OptionTable<MoeOptions>& t);
};

/// What a layer's mixture has beyond the decoder's sizes.
struct Mixture {
  int64_t experts = 0;
  int64_t width = 0;         ///< of one expert
  int64_t shared_width = 0;  ///< of the shared experts, which are one MLP; 0: none
};

/// The table's sizes with the options' changes. Throws Error for an unknown flavour.
Dimensions dimensions(const MoeOptions& options);
Mixture mixture(const MoeOptions& options);
RouteSpec route_spec(const MoeOptions& options);

/// Whether layer `layer` is a mixture: all; layers moe_every - 1, 2 moe_every - 1, ...; or all but
/// the first dense_layers (arXiv:2401.06066).
bool is_mixture(const MoeOptions& options, int64_t layer);

}  // namespace assay::models
