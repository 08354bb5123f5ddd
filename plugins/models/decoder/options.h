// The sizes and options that the models on Decoder share.
#pragma once

#include <cstdint>
#include <string>

#include "assay/options.h"

namespace assay::models {

/// The sizes of one model. vocab 0: the flavour has no vocabulary of its own.
struct Dimensions {
  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t ffn = 0;
  int64_t vocab = 0;
  bool tied = false;     ///< the embedding is the head's weight
  int64_t head_dim = 0;  ///< hidden / heads unless set by an option
};

struct DecoderOptions {
  std::string flavour = "tiny";
  int64_t seq_len = 256;
  std::string vocab = "auto";
  std::string tied = "flavour";
  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t ffn = 0;
  double eps = 1e-5;
  double theta = 500000.0;
  std::string rope_scaling = "llama";
  double rope_factor = 8.0;
  double rope_low = 1.0;
  double rope_high = 4.0;
  double rope_original = 8192.0;
  std::string mask = "causal";
  std::string attention = "softmax";
};

/// A flavour's sizes with the options' changes.
Dimensions changed(Dimensions size, const DecoderOptions& options);

/// Declares all of them but `flavour`, whose choices are the model's.
template <class Options>
void declare_decoder(OptionTable<Options>& t) {
  using enum Affects;
  using O = DecoderOptions;
  const auto of = []<class Field>(Field O::*field) { return static_cast<Field Options::*>(field); };
  constexpr double kMaxSize = 1 << 20;
  t.add(of(&O::seq_len), "seq_len", numerics, {1, kMaxSize}, "tokens of a row").unit = "tokens";
  t.add(of(&O::vocab), "vocab", numerics, {"auto", "data", "flavour"},
        "vocabulary of the data or of the flavour; auto: the flavour's where it has one");
  t.add(of(&O::tied), "tied", numerics, {"flavour", "true", "false"},
        "one weight embeds and predicts");
  t.add(of(&O::hidden), "hidden", numerics, {0, kMaxSize}, "model width; 0: the flavour's");
  t.add(of(&O::layers), "layers", numerics, {0, 4096}, "transformer layers; 0: the flavour's");
  t.add(of(&O::heads), "heads", numerics, {0, 4096}, "query heads; 0: the flavour's");
  t.add(of(&O::kv_heads), "kv_heads", numerics, {0, 4096}, "key and value heads; 0: the flavour's");
  t.add(of(&O::head_dim), "head_dim", numerics, {0, 4096}, "width of a head; 0: hidden / heads");
  t.add(of(&O::ffn), "ffn", numerics, {0, kMaxSize}, "width of the MLP; 0: the flavour's");
  t.add(of(&O::eps), "eps", numerics, {0, 1}, "added to the mean square in every norm");
  t.add(of(&O::theta), "theta", numerics, {1, 1e12}, "base of the rotary wavelengths");
  t.add(of(&O::rope_scaling), "rope_scaling", numerics, {"llama", "none"},
        "Llama 3.1's stretch of long rotary wavelengths");
  t.add(of(&O::rope_factor), "rope_factor", numerics, {1, 1024},
        "stretch of the longest wavelengths");
  t.add(of(&O::rope_low), "rope_low", numerics, {0.001, 1024},
        "original / rope_low: wavelength from which the stretch is whole");
  t.add(of(&O::rope_high), "rope_high", numerics, {0.001, 1024},
        "original / rope_high: wavelength below which there is none");
  t.add(of(&O::rope_original), "rope_original", numerics, {1, 1e9},
        "context that the base was made for")
      .unit = "tokens";
  t.add(of(&O::mask), "mask", numerics, {"causal", "document"},
        "document: a token attends to its own document only");
  t.add(of(&O::attention), "attention", numerics, {"softmax"}, "kind of attention");
}

}  // namespace assay::models
