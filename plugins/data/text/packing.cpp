// First fit over a bounded number of open rows.
#include "packing.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace assay::data {
namespace {

struct Row {
  std::vector<DocumentSpan> documents{};
  int64_t room = 0;
};

}  // namespace

PackedRows first_fit(std::span<const DocumentSpan> documents, int64_t seq_len, int64_t bins) {
  PackedRows packed;
  std::deque<Row> open;
  const auto close_oldest = [&] {
    packed.padding += open.front().room;
    packed.rows.push_back(std::move(open.front().documents));
    open.pop_front();
  };
  for (const DocumentSpan& document : documents) {
    const int64_t pairs = document.pairs();
    if (pairs > seq_len) ++packed.dropped;
    if (pairs < 1 || pairs > seq_len) continue;
    auto row =
        std::find_if(open.begin(), open.end(), [&](const Row& r) { return r.room >= pairs; });
    if (row == open.end()) {
      if (static_cast<int64_t>(open.size()) == bins) close_oldest();
      row = open.insert(open.end(), Row{.room = seq_len});
    }
    row->documents.push_back(document);
    row->room -= pairs;
  }
  while (!open.empty()) close_oldest();
  return packed;
}

}  // namespace assay::data
