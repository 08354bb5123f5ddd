// Data sources: numbered rows that depend on nothing but their number.
#include <algorithm>

#include "assay/data.h"
#include "core/conformance/subject.h"

namespace assay::conformance {
namespace {

constexpr int64_t kRowTokens = 32;
constexpr int64_t kIgnored = -100;

std::vector<int64_t> some_rows(const DataSource& data, Split split) {
  const int64_t rows = data.rows(split, kRowTokens);
  std::vector<int64_t> picked;
  for (const int64_t row : {int64_t{0}, int64_t{1}, rows / 2, rows - 1}) {
    if (row >= 0 && row < rows) picked.push_back(row);
  }
  return picked;
}

void expect_equal(const Sample& a, const Sample& b) {
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_EQ(a.document_starts, b.document_starts);
  EXPECT_EQ(a.label_bytes, b.label_bytes);
}

void rows_do_not_depend_on_order(const Subject& s) {
  const auto first = s.create<DataSource>(), second = s.create<DataSource>();
  for (const Split split : {Split::train, Split::validation}) {
    std::vector<int64_t> rows = some_rows(*first, split);
    std::vector<Sample> forward;
    for (const int64_t row : rows) forward.push_back(first->sample(split, row, kRowTokens));
    for (size_t i = rows.size(); i-- > 0;) {
      expect_equal(second->sample(split, rows[i], kRowTokens), forward[i]);
    }
  }
}

void samples_are_well_formed(const Subject& s) {
  const auto data = s.create<DataSource>();
  for (const Split split : {Split::train, Split::validation}) {
    for (const int64_t row : some_rows(*data, split)) {
      const Sample sample = data->sample(split, row, kRowTokens);
      ASSERT_EQ(sample.tokens.size(), static_cast<size_t>(kRowTokens));
      ASSERT_EQ(sample.labels.size(), static_cast<size_t>(kRowTokens));
      const auto known = [&](int64_t id) { return id >= 0 && id < data->vocabulary(); };
      EXPECT_TRUE(std::all_of(sample.tokens.begin(), sample.tokens.end(), known));
      EXPECT_TRUE(std::all_of(sample.labels.begin(), sample.labels.end(),
                              [&](int64_t id) { return known(id) || id == kIgnored; }));
      EXPECT_GT(sample.label_bytes, 0);
      const auto& starts = sample.document_starts;
      EXPECT_TRUE(std::is_sorted(starts.begin(), starts.end()));
      EXPECT_TRUE(starts.empty() || starts.front() == 0);
    }
  }
}

/// tokens[i] predicts labels[i], which is the token after it unless a document begins there.
void labels_are_shifted(const Subject& s) {
  const auto data = s.create<DataSource>();
  const Sample sample = data->sample(Split::train, 0, kRowTokens);
  int64_t compared = 0;
  for (size_t i = 0; i + 1 < sample.tokens.size(); ++i) {
    if (sample.labels[i] == kIgnored) continue;
    EXPECT_EQ(sample.labels[i], sample.tokens[i + 1]) << "at " << i;
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

void fingerprint_is_stable(const Subject& s) {
  const std::string first = s.create<DataSource>()->fingerprint();
  EXPECT_EQ(first, s.create<DataSource>()->fingerprint());
  EXPECT_EQ(first.size(), 64u);
  EXPECT_EQ(first.find_first_not_of("0123456789abcdef"), std::string::npos);
}

void has_both_splits(const Subject& s) {
  const auto data = s.create<DataSource>();
  EXPECT_GT(data->rows(Split::train, kRowTokens), 0);
  EXPECT_GT(data->rows(Split::validation, kRowTokens), 0);
  EXPECT_GT(data->tokens(Split::train), data->tokens(Split::validation));
  EXPECT_GE(data->rows(Split::train, kRowTokens), data->rows(Split::train, 2 * kRowTokens));
}

}  // namespace

std::vector<Case> data_cases() {
  constexpr Kind k = Kind::data;
  return {{k, "RowsDoNotDependOnOrder", rows_do_not_depend_on_order},
          {k, "SamplesAreWellFormed", samples_are_well_formed},
          {k, "LabelsAreShifted", labels_are_shifted},
          {k, "FingerprintIsStable", fingerprint_is_stable},
          {k, "HasBothSplits", has_both_splits}};
}

}  // namespace assay::conformance
