// RopeTable: cos and sin of the rotary angles, computed in fp64 and kept for the next call.
#pragma once

#include <utility>

#include "assay/api.h"
#include "assay/ops.h"

namespace assay {

/// Angular frequency of pair i of head_dim / 2, with Llama 3.1 scaling if asked (recipes 1.1).
ASSAY_API double rope_frequency(const RopeSpec& spec, int64_t i);

class ASSAY_API RopeTable {
 public:
  /// cos and sin for x (B, S, ...): (S, dh / 2), or (B, S, dh / 2) when positions has ids.
  std::pair<Tensor, Tensor> get(const Tensor& x, const Positions& positions, const RopeSpec& spec);

 private:
  RopeSpec spec_{};
  int64_t begin_ = -1, length_ = 0;
  Tensor ids_, cos_, sin_;
};

}  // namespace assay
