// The table of flavours and the declaration of the options.
#include "flavours.h"

#include <array>

namespace assay::models {
namespace {

struct Flavour {
  const char* name;
  Dimensions size;
};

// hidden, layers, heads, kv_heads, ffn, vocab, tied. The last five are arXiv:2407.21783 and Llama
// 3.2; ffn is floor(8 hidden / 3), times a multiplier, rounded up to a multiple.
constexpr std::array<Flavour, 9> kFlavours = {{
    {"tiny", {128, 4, 4, 2, 384, 0, false}},
    {"small", {256, 6, 8, 4, 768, 0, false}},
    {"medium", {512, 8, 8, 4, 1536, 0, false}},
    {"debug", {256, 6, 16, 16, 768, 2048, false}},
    {"1B", {2048, 16, 32, 8, 8192, 128256, true}},
    {"3B", {3072, 28, 24, 8, 8192, 128256, true}},
    {"8B", {4096, 32, 32, 8, 14336, 128256, false}},
    {"70B", {8192, 80, 64, 8, 28672, 128256, false}},
    {"405B", {16384, 126, 128, 8, 53248, 128256, false}},
}};

void change(int64_t& size, int64_t option) {
  if (option > 0) size = option;
}

}  // namespace

std::vector<std::string> flavour_names() {
  std::vector<std::string> names;
  for (const Flavour& flavour : kFlavours) names.emplace_back(flavour.name);
  return names;
}

Dimensions dimensions(const Llama3Options& options) {
  for (const Flavour& flavour : kFlavours) {
    if (options.flavour != flavour.name) continue;
    Dimensions size = flavour.size;
    change(size.hidden, options.hidden);
    change(size.layers, options.layers);
    change(size.heads, options.heads);
    change(size.kv_heads, options.kv_heads);
    change(size.ffn, options.ffn);
    size.head_dim = options.head_dim > 0 ? options.head_dim : size.hidden / size.heads;
    if (options.tied != "flavour") size.tied = options.tied == "true";
    return size;
  }
  throw Error("model/llama3 has no flavour '" + options.flavour + "'");
}

void Llama3Options::declare(OptionTable<Llama3Options>& t) {
  using enum Affects;
  using O = Llama3Options;
  constexpr double kMaxSize = 1 << 20;
  t.add(&O::flavour, "flavour", numerics,
        {"tiny", "small", "medium", "debug", "1B", "3B", "8B", "70B", "405B"},
        "row of the size table");
  t.add(&O::seq_len, "seq_len", numerics, {1, kMaxSize}, "tokens of a row").unit = "tokens";
  t.add(&O::vocab, "vocab", numerics, {"auto", "data", "flavour"},
        "vocabulary of the data or of the flavour; auto: the flavour's where it has one");
  t.add(&O::tied, "tied", numerics, {"flavour", "true", "false"}, "one weight embeds and predicts");
  t.add(&O::hidden, "hidden", numerics, {0, kMaxSize}, "model width; 0: the flavour's");
  t.add(&O::layers, "layers", numerics, {0, 4096}, "transformer layers; 0: the flavour's");
  t.add(&O::heads, "heads", numerics, {0, 4096}, "query heads; 0: the flavour's");
  t.add(&O::kv_heads, "kv_heads", numerics, {0, 4096}, "key and value heads; 0: the flavour's");
  t.add(&O::head_dim, "head_dim", numerics, {0, 4096}, "width of a head; 0: hidden / heads");
  t.add(&O::ffn, "ffn", numerics, {0, kMaxSize}, "width of the MLP; 0: the flavour's");
  t.add(&O::eps, "eps", numerics, {0, 1}, "added to the mean square in every norm");
  t.add(&O::theta, "theta", numerics, {1, 1e12}, "base of the rotary wavelengths");
  t.add(&O::rope_scaling, "rope_scaling", numerics, {"llama", "none"},
        "Llama 3.1's stretch of long rotary wavelengths");
  t.add(&O::rope_factor, "rope_factor", numerics, {1, 1024}, "stretch of the longest wavelengths");
  t.add(&O::rope_low, "rope_low", numerics, {0.001, 1024},
        "original / rope_low: wavelength from which the stretch is whole");
  t.add(&O::rope_high, "rope_high", numerics, {0.001, 1024},
        "original / rope_high: wavelength below which there is none");
  t.add(&O::rope_original, "rope_original", numerics, {1, 1e9},
        "context that the base was made for")
      .unit = "tokens";
  t.add(&O::mask, "mask", numerics, {"causal", "document"},
        "document: a token attends to its own document only");
  t.add(&O::attention, "attention", numerics, {"softmax"}, "kind of attention");
}

}  // namespace assay::models
