// A document is a contiguous range of places, and a rank's share of it a contiguous range of the
// rank's tokens: if it reaches both chunks of a rank, it holds the end of one and the begin of the
// other, which the rank keeps side by side.
#include "pieces.h"

#include <functional>

namespace assay::parallel {
namespace {

using Visit = std::function<void(int64_t row, const Range& document)>;

/// Every document of every row; the whole sequence, once, where no row has more than one.
void for_each_document(const Sequence& sequence, const Documents& documents, const Visit& visit) {
  bool cut = false;
  for (const auto& starts : documents.starts) cut |= starts.size() > 1;
  if (!cut) return visit(-1, {0, sequence.length()});
  for (size_t row = 0; row < documents.starts.size(); ++row) {
    const auto& starts = documents.starts[row];
    for (size_t i = 0; i < starts.size(); ++i) {
      const int64_t end = i + 1 < starts.size() ? starts[i + 1] : sequence.length();
      visit(static_cast<int64_t>(row), {starts[i], end});
    }
  }
}

void add(Pieces& pieces, const Piece& piece) {
  if (piece.queries.empty() || piece.keys.empty()) return;
  if (!pieces.empty() && !piece.causal) {  // both chunks of a rank may see the same keys
    Piece& last = pieces.back();
    if (last.row == piece.row && last.keys == piece.keys && !last.causal &&
        last.queries.end == piece.queries.begin) {
      last.queries.end = piece.queries.end;
      return;
    }
  }
  pieces.push_back(piece);
}

}  // namespace

Pieces pieces_of_block(const Sequence& sequence, int64_t rank, int64_t held,
                       const Documents& documents) {
  Pieces pieces;
  for_each_document(sequence, documents, [&](int64_t row, const Range& document) {
    if (rank == held) {
      const Range own = sequence.local_range(rank, document);
      return add(pieces, {row, own, own, true});
    }
    for (const Range& chunk : sequence.chunks(rank)) {
      const Range earlier = common(document, {0, chunk.begin});
      add(pieces, {row, sequence.local_range(rank, common(document, chunk)),
                   sequence.local_range(held, earlier), false});
    }
  });
  return pieces;
}

Pieces pieces_of_row(const Sequence& sequence, int64_t rank, const Documents& documents) {
  Pieces pieces;
  for_each_document(sequence, documents, [&](int64_t row, const Range& document) {
    for (const Range& chunk : sequence.chunks(rank)) {
      const Range own = common(document, chunk);
      if (own.empty()) continue;
      add(pieces, {row, sequence.local_range(rank, own), {document.begin, own.end}, true});
    }
  });
  return pieces;
}

int64_t work_of(const Pieces& pieces, int64_t rows) {
  int64_t sum = 0;
  for (const Piece& piece : pieces) sum += piece.work() * (piece.row < 0 ? rows : 1);
  return sum;
}

}  // namespace assay::parallel
