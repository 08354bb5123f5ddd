// DataSource: the contract of kind `data`: numbered rows of tokens, the same for every layout.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/api.h"
#include "assay/kind.h"

namespace assay {

/// Validation rows are held out: they share no token with the training rows.
enum class Split { train, validation };

/// One row: tokens[i] predicts labels[i] (already shifted); a label of -100 is ignored.
struct Sample {
  std::vector<int64_t> tokens{};
  std::vector<int64_t> labels{};
  std::vector<int64_t> document_starts{};  ///< ascending, first 0
  int64_t label_bytes = 0;                 ///< bytes of text that the valid labels stand for
};

/// Called:   constructed in every rank; const functions from one thread. Construction may build a
///           cache (a trained tokenizer) under a file lock; later constructions read it.
/// Order:    rows in the order of the corpus; the trainer shuffles them from (seed, index).
/// Numerics: row i is the same for any world size, resume point and order of calls.
/// Errors:   a missing, empty or binary file, a text shorter than one row: Error naming the file.
class ASSAY_API DataSource {
 public:
  static constexpr Kind kind = Kind::data;
  virtual ~DataSource();

  virtual int64_t vocabulary() const = 0;       ///< ids are 0 .. vocabulary() - 1
  virtual std::string fingerprint() const = 0;  ///< 64 hex digits: content and tokenizer
  virtual int64_t rows(Split split, int64_t seq_len) const = 0;
  virtual Sample sample(Split split, int64_t row, int64_t seq_len) const = 0;
  /// Figures for `describe`: "tokens", "bytes".
  virtual int64_t tokens(Split split) const = 0;
  virtual int64_t bytes() const = 0;
};

}  // namespace assay
