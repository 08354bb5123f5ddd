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

}  // namespace

std::vector<std::string> flavour_names() {
  std::vector<std::string> names;
  for (const Flavour& flavour : kFlavours) names.emplace_back(flavour.name);
  return names;
}

Dimensions dimensions(const Llama3Options& options) {
  for (const Flavour& flavour : kFlavours) {
    if (options.flavour == flavour.name) return changed(flavour.size, options);
  }
  throw Error("model/llama3 has no flavour '" + options.flavour + "'");
}

void Llama3Options::declare(OptionTable<Llama3Options>& t) {
  const auto flavour = static_cast<std::string Llama3Options::*>(&DecoderOptions::flavour);
  t.add(flavour, "flavour", Affects::numerics,
        {"tiny", "small", "medium", "debug", "1B", "3B", "8B", "70B", "405B"},
        "row of the size table");
  declare_decoder(t);
}

}  // namespace assay::models
