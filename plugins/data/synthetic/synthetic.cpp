// Rows of data/synthetic, and its registration.
#include "synthetic.h"

#include <cmath>

#include "assay/error.h"
#include "assay/files.h"
#include "assay/plugin.h"

namespace assay::data {
namespace {

constexpr uint64_t kRowKey = 0x9E3779B97F4A7C15;        // golden ratio: the step of SplitMix64
constexpr uint64_t kSuccessorKey = 0xD1B54A32D192ED03;  // another stream than the draws

/// SplitMix64's output function (Steele, Lea, Flood 2014): 64 well-mixed bits of `x`.
uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

/// Uniform in 0 .. n - 1 (Lemire's multiply-shift; n is far below 2^32, so the bias is too small to
/// see).
int64_t below(int64_t n, uint64_t bits) {
  return static_cast<int64_t>(((bits >> 32) * static_cast<uint64_t>(n)) >> 32);
}

}  // namespace

std::string Synthetic::fingerprint() const {
  const auto& o = options_;
  std::string text = "data/synthetic 1 " + o.pattern;
  for (const int64_t number : {o.vocab_size, o.branches, o.tokens.value, o.stream}) {
    text += " " + std::to_string(number);
  }
  return sha256(text + " " + std::to_string(o.validation));
}

int64_t Synthetic::tokens(Split split) const {
  const int64_t all = options_.tokens.value;
  const auto held_out = static_cast<int64_t>(std::floor(options_.validation * all));
  return split == Split::train ? all - held_out : held_out;
}

int64_t Synthetic::rows(Split split, int64_t seq_len) const {
  if (split == Split::validation && options_.validation == 0) return 0;
  const int64_t count = (tokens(split) - 1) / seq_len;
  if (count >= 1) return count;
  throw Error(
      "data/synthetic: " + std::to_string(tokens(split)) + " tokens have no row of seq_len " +
          std::to_string(seq_len),
      "raise data.tokens" + std::string(split == Split::train ? "" : " or data.validation"));
}

int64_t Synthetic::next(int64_t id, uint64_t draw) const {
  const auto& o = options_;
  if (o.pattern == "uniform") return below(o.vocab_size, draw);
  const auto branch = static_cast<uint64_t>(below(o.branches, draw));
  const auto edge = static_cast<uint64_t>(id) * static_cast<uint64_t>(o.branches) + branch;
  return below(o.vocab_size, mixed(edge * kSuccessorKey + static_cast<uint64_t>(o.stream)));
}

Sample Synthetic::sample(Split split, int64_t row, int64_t seq_len) const {
  ASSAY_CHECK(row >= 0 && row < rows(split, seq_len), "data/synthetic: no such row");
  const uint64_t side = split == Split::train ? 0 : 1;
  uint64_t state = mixed(mixed(2 * static_cast<uint64_t>(row) + side) +
                         kSuccessorKey * static_cast<uint64_t>(options_.stream));
  const auto draw = [&state] { return mixed(state += kRowKey); };
  Sample sample{.document_starts = {0}, .label_bytes = seq_len};
  int64_t id = below(options_.vocab_size, draw());
  for (int64_t i = 0; i < seq_len; ++i) {
    sample.tokens.push_back(id);
    id = next(id, draw());
    sample.labels.push_back(id);
  }
  return sample;
}

}  // namespace assay::data

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::data::Synthetic>(
      {.name = "synthetic",
       .summary = "rows from numbers alone: a Markov chain or noise",
       .provides = {"resume.bitwise"}});
}
