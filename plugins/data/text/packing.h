// first_fit packing: whole documents into rows, the rest of a row padded.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace assay::data {

/// A document's tokens in the stream, [begin, end): end - begin - 1 pairs of token and label.
struct DocumentSpan {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t pairs() const { return end - begin - 1; }
};

struct PackedRows {
  std::vector<std::vector<DocumentSpan>> rows{};
  int64_t dropped = 0;  ///< documents longer than a row
  int64_t padding = 0;  ///< pairs without a document
};

/// Each document goes to the oldest open row with room; where none has any, a row is opened, and
/// the oldest of `bins` closed first. Documents of fewer than two tokens are left out.
PackedRows first_fit(std::span<const DocumentSpan> documents, int64_t seq_len, int64_t bins);

}  // namespace assay::data
