// Counter-based random numbers: the value of an element depends on (key, index) alone, so that
// every layout and every order of calls draws the same.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "assay/api.h"

namespace assay::train {

/// Philox4x32-10 (Salmon et al., SC 2011, section 4.2): four words for one 128-bit counter.
ASSAY_API std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter,
                                         std::array<uint32_t, 2> key);

/// Key of a stream: FNV-1a over the name, mixed with the seed.
ASSAY_API uint64_t stream_key(uint64_t seed, std::string_view name);

/// Uniform in (0, 1), 53 bits, for element `index` of a stream.
ASSAY_API double uniform_at(uint64_t key, uint64_t index);

/// Quantile of the standard normal; relative error below 1e-15 (Wichura 1988, AS 241 PPND16).
ASSAY_API double normal_quantile(double p);

/// Cumulative distribution of the standard normal.
ASSAY_API double normal_cdf(double x);

/// A permutation of 0 .. n - 1 without a table: a four-round Feistel network over the next even
/// number of bits, walked until the value is in range (cycle walking, Black and Rogaway 2002).
class ASSAY_API Permutation {
 public:
  Permutation(uint64_t n, uint64_t key);
  uint64_t operator()(uint64_t i) const;

 private:
  uint64_t encrypt(uint64_t x) const;
  uint64_t n_, key_, half_mask_;
  int half_bits_;
};

}  // namespace assay::train
