// data/text: rows of tokens from a text, JSON lines or token-id file.
#pragma once

#include <map>

#include "assay/data.h"
#include "corpus.h"
#include "packing.h"

namespace assay::data {

/// Documents, each between bos and eos, form one stream; its last share is held out. Packing
/// `concat` (stride s): row i = tokens [i s, (i + 1) s), labels the same shifted by one, so a split
/// of N tokens has floor((N - 1) / s) rows and each token but the first is a label once. Stride
/// s+1: floor(N / (s + 1)) rows. `first_fit`: packing.h, with labels -100 over the padding.
class Text final : public DataSource {
 public:
  using Options = TextOptions;
  explicit Text(const Options& options);

  int64_t vocabulary() const override { return corpus_.vocabulary; }
  std::string fingerprint() const override { return corpus_.fingerprint; }
  int64_t rows(Split split, int64_t seq_len) const override;
  Sample sample(Split split, int64_t row, int64_t seq_len) const override;
  int64_t tokens(Split split) const override;
  int64_t bytes() const override { return corpus_.bytes; }

 private:
  /// Tokens [begin, end) of the stream.
  struct Part {
    int64_t begin = 0;
    int64_t end = 0;
    int64_t size() const { return end - begin; }
  };

  Part part(Split split) const;
  int64_t stride(int64_t seq_len) const { return options_.stride == "s" ? seq_len : seq_len + 1; }
  const PackedRows& packed(Split split, int64_t seq_len) const;
  Sample concat_row(Split split, int64_t row, int64_t seq_len) const;
  Sample packed_row(Split split, int64_t row, int64_t seq_len) const;
  /// Appends the pairs of tokens [begin, begin + pairs].
  void append(int64_t begin, int64_t pairs, Sample& sample) const;
  [[noreturn]] void refuse_short(Split split, int64_t seq_len) const;

  const Options options_;
  const Corpus corpus_;
  mutable std::map<std::pair<Split, int64_t>, PackedRows> packed_;  ///< computed on first use
};

}  // namespace assay::data
