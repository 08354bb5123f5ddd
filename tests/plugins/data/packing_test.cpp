// first_fit: every document once, in rows that hold it, and the counts of what is lost.
#include "packing.h"

#include <gtest/gtest.h>

namespace assay::data {
namespace {

std::vector<DocumentSpan> documents(const std::vector<int64_t>& pairs) {
  std::vector<DocumentSpan> list;
  int64_t at = 0;
  for (const int64_t n : pairs) {
    list.push_back({at, at + n + 1});
    at += n + 1;
  }
  return list;
}

/// Pairs per document of each row.
std::vector<std::vector<int64_t>> lengths(const PackedRows& packed) {
  std::vector<std::vector<int64_t>> rows;
  for (const auto& row : packed.rows) {
    rows.emplace_back();
    for (const DocumentSpan& document : row) rows.back().push_back(document.pairs());
  }
  return rows;
}

using Rows = std::vector<std::vector<int64_t>>;

}  // namespace

TEST(FirstFit, FillsTheOldestRowWithRoom) {
  const PackedRows packed = first_fit(documents({6, 7, 4, 3, 8}), 10, 8);
  EXPECT_EQ(lengths(packed), (Rows{{6, 4}, {7, 3}, {8}}));
  EXPECT_EQ(packed.padding, 2);
  EXPECT_EQ(packed.dropped, 0);
}

TEST(FirstFit, ClosesTheOldestWhenAllBinsAreOpen) {
  const PackedRows packed = first_fit(documents({6, 7, 8, 4, 3}), 10, 2);
  EXPECT_EQ(lengths(packed), (Rows{{6}, {7}, {8}, {4, 3}})) << "6 was closed before 4 came";
}

TEST(FirstFit, DropsWhatIsLongerThanARowAndCountsIt) {
  const PackedRows packed = first_fit(documents({11, 10, 0, 25}), 10, 2);
  EXPECT_EQ(lengths(packed), (Rows{{10}}));
  EXPECT_EQ(packed.dropped, 2);
}

}  // namespace assay::data
