// Flavours of llama3: the published sizes and three small ones for CPUs, and the options that name
// and change them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

struct Llama3Options {
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

  static void declare(OptionTable<Llama3Options>& t);
};

/// The table's sizes with the options' changes. Throws Error for an unknown flavour.
Dimensions dimensions(const Llama3Options& options);

/// Names of the table, in its order.
std::vector<std::string> flavour_names();

}  // namespace assay::models
