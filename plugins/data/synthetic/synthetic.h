// data/synthetic: rows made from numbers alone, for benchmarks and tests that need no corpus.
#pragma once

#include "assay/data.h"
#include "assay/options.h"

namespace assay::data {

struct SyntheticOptions {
  std::string pattern = "markov";
  int64_t vocab_size = 256;
  int64_t branches = 4;
  Count tokens{1'000'000};
  double validation = 0.02;
  int64_t stream = 1;

  static void declare(OptionTable<SyntheticOptions>& t) {
    using enum Affects;
    using O = SyntheticOptions;
    t.add(&O::pattern, "pattern", numerics, {"markov", "uniform"},
          "markov: a chain that can be learned; uniform: independent ids");
    t.add(&O::vocab_size, "vocab_size", numerics, {2, 1 << 24}, "ids are below it");
    t.add(&O::branches, "branches", numerics, {1, 1024},
          "markov: equally likely successors of an id; the loss can fall to ln(branches)");
    t.add(&O::tokens, "tokens", numerics, {2, 1e12}, "length of the stream");
    t.add(&O::validation, "validation", numerics, {0, 0.5}, "share held out, at the end");
    t.add(&O::stream, "stream", numerics, {0, 1e15}, "another number is another stream");
  }
};

/// Row i is a function of (options, i) alone. `uniform`: ids of independent uniform draws: the
/// lowest loss is ln V. `markov`: each id is followed by one of `branches` successors, all equally
/// likely and drawn once per id: the lowest loss is ln(branches). Rows start anew; each is one
/// document. label_bytes counts one byte per id.
class Synthetic final : public DataSource {
 public:
  using Options = SyntheticOptions;
  explicit Synthetic(const Options& options) : options_(options) {}

  int64_t vocabulary() const override { return options_.vocab_size; }
  std::string fingerprint() const override;
  int64_t rows(Split split, int64_t seq_len) const override;
  Sample sample(Split split, int64_t row, int64_t seq_len) const override;
  int64_t tokens(Split split) const override;
  int64_t bytes() const override { return options_.tokens.value; }

 private:
  int64_t next(int64_t id, uint64_t draw) const;

  const Options options_;
};

}  // namespace assay::data
