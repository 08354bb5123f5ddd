// data/synthetic: the same rows everywhere, ids in range, and the structure that can be learned.
#include "synthetic.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "assay/error.h"

namespace assay::data {

TEST(Synthetic, RowsAreAFunctionOfTheirNumber) {
  const Synthetic a({}), b({});
  const Sample row = a.sample(Split::train, 7, 64);
  b.sample(Split::train, 3, 64);
  EXPECT_EQ(b.sample(Split::train, 7, 64).tokens, row.tokens);
  EXPECT_NE(a.sample(Split::train, 8, 64).tokens, row.tokens);
  EXPECT_NE(a.sample(Split::validation, 7, 64).tokens, row.tokens);
  EXPECT_NE(Synthetic({.stream = 2}).sample(Split::train, 7, 64).tokens, row.tokens);
  for (size_t i = 0; i + 1 < 64; ++i) EXPECT_EQ(row.labels[i], row.tokens[i + 1]);
}

TEST(Synthetic, AMarkovChainHasItsBranches) {
  const Synthetic chain({.vocab_size = 50, .branches = 3});
  std::map<int64_t, std::set<int64_t>> successors;
  for (int64_t i = 0; i < 60; ++i) {
    const Sample row = chain.sample(Split::train, i, 128);
    for (size_t t = 0; t < 128; ++t) {
      ASSERT_GE(row.labels[t], 0);
      ASSERT_LT(row.labels[t], 50);
      successors[row.tokens[t]].insert(row.labels[t]);
    }
  }
  size_t most = 0;
  for (const auto& [id, next] : successors) most = std::max(most, next.size());
  EXPECT_EQ(most, 3U);
}

TEST(Synthetic, UniformIdsAreUniform) {
  const Synthetic noise({.pattern = "uniform", .vocab_size = 8});
  std::vector<int64_t> counts(8, 0);
  constexpr int64_t rows = 100, seq_len = 80;
  for (int64_t i = 0; i < rows; ++i) {
    for (const int64_t id : noise.sample(Split::train, i, seq_len).labels) {
      ++counts[static_cast<size_t>(id)];
    }
  }
  double chi_square = 0;
  for (const int64_t count : counts) {
    const double d = static_cast<double>(count) - 1000;
    chi_square += d * d / 1000;
  }
  EXPECT_LT(chi_square, 24.3);  // 7 degrees of freedom, 0.1 %
}

TEST(Synthetic, RowsFollowFromTheLength) {
  const Synthetic data({.tokens = {1001}, .validation = 0.1});
  EXPECT_EQ(data.tokens(Split::validation), 100);
  EXPECT_EQ(data.rows(Split::train, 10), 90);
  EXPECT_THROW(data.rows(Split::validation, 200), Error);
  EXPECT_EQ(Synthetic({.validation = 0}).rows(Split::validation, 10), 0);
}

TEST(Synthetic, FingerprintsFollowTheOptions) {
  EXPECT_EQ(Synthetic({}).fingerprint(), Synthetic({}).fingerprint());
  EXPECT_NE(Synthetic({}).fingerprint(), Synthetic({.stream = 2}).fingerprint());
}

}  // namespace assay::data
