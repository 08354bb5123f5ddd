// Rows of data/text, and its registration.
#include "text.h"

#include <algorithm>
#include <cmath>

#include "assay/error.h"
#include "assay/plugin.h"

namespace assay::data {
namespace {

constexpr int64_t kIgnored = -100;

}  // namespace

Text::Text(const Options& options) : options_(options), corpus_(open_corpus(options)) {}

Text::Part Text::part(Split split) const {
  const int64_t all = corpus_.tokens.tokens();
  const int64_t cut = all - static_cast<int64_t>(std::floor(options_.validation * all));
  return split == Split::train ? Part{0, cut} : Part{cut, all};
}

int64_t Text::tokens(Split split) const { return part(split).size(); }

void Text::refuse_short(Split split, int64_t seq_len) const {
  const bool train = split == Split::train;
  const std::string where = train ? "training part" : "validation part";
  std::string hint = "lower model.seq_len, or name a larger corpus";
  if (!train) hint = "raise data.validation (0: none is held out), or lower model.seq_len";
  if (options_.packing == "first_fit") hint += "; packing: concat cuts long documents";
  throw Error("data/text: " + options_.path.string() + ": the " + where + " of " +
                  std::to_string(tokens(split)) + " tokens has no row of seq_len " +
                  std::to_string(seq_len),
              hint);
}

int64_t Text::rows(Split split, int64_t seq_len) const {
  if (split == Split::validation && options_.validation == 0) return 0;
  const int64_t size = tokens(split);
  int64_t count = options_.stride == "s" ? (size - 1) / seq_len : size / (seq_len + 1);
  if (options_.packing == "first_fit") {
    count = static_cast<int64_t>(packed(split, seq_len).rows.size());
  }
  if (count < 1) refuse_short(split, seq_len);
  return count;
}

Sample Text::sample(Split split, int64_t row, int64_t seq_len) const {
  ASSAY_CHECK(row >= 0 && row < rows(split, seq_len), "data/text: no such row");
  return options_.packing == "concat" ? concat_row(split, row, seq_len)
                                      : packed_row(split, row, seq_len);
}

void Text::append(int64_t begin, int64_t pairs, Sample& sample) const {
  const TokenFile& tokens = corpus_.tokens;
  for (int64_t i = begin; i < begin + pairs; ++i) {
    const int64_t label = tokens.token(i + 1);
    sample.tokens.push_back(tokens.token(i));
    sample.labels.push_back(label);
    sample.label_bytes += tokens.bytes_of(label);
  }
}

Sample Text::concat_row(Split split, int64_t row, int64_t seq_len) const {
  const int64_t begin = part(split).begin + row * stride(seq_len);
  Sample sample{.document_starts = {0}};
  append(begin, seq_len, sample);
  const auto starts = corpus_.tokens.starts();
  auto next = std::upper_bound(starts.begin(), starts.end(), static_cast<uint64_t>(begin));
  for (; next != starts.end() && static_cast<int64_t>(*next) < begin + seq_len; ++next) {
    sample.document_starts.push_back(static_cast<int64_t>(*next) - begin);
  }
  return sample;
}

const PackedRows& Text::packed(Split split, int64_t seq_len) const {
  const auto [entry, fresh] = packed_.try_emplace({split, seq_len});
  if (fresh) {
    const auto starts = corpus_.tokens.starts();
    const Part range = part(split);
    std::vector<DocumentSpan> documents;
    for (size_t i = 0; i < starts.size(); ++i) {
      const auto begin = static_cast<int64_t>(starts[i]);
      const int64_t end =
          i + 1 < starts.size() ? static_cast<int64_t>(starts[i + 1]) : corpus_.tokens.tokens();
      if (begin >= range.begin && end <= range.end) documents.push_back({begin, end});
    }
    entry->second = first_fit(documents, seq_len, options_.bins);
  }
  return entry->second;
}

Sample Text::packed_row(Split split, int64_t row, int64_t seq_len) const {
  Sample sample;
  for (const DocumentSpan& document : packed(split, seq_len).rows[static_cast<size_t>(row)]) {
    sample.document_starts.push_back(static_cast<int64_t>(sample.tokens.size()));
    append(document.begin, document.pairs(), sample);
  }
  const auto used = static_cast<int64_t>(sample.tokens.size());
  if (used < seq_len) sample.document_starts.push_back(used);
  sample.tokens.resize(static_cast<size_t>(seq_len), corpus_.tokens.pad_id());
  sample.labels.resize(static_cast<size_t>(seq_len), kIgnored);
  return sample;
}

}  // namespace assay::data

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::data::Text>(
      {.name = "text",
       .summary = "rows of tokens from a text, JSON lines or token-id file",
       .reference = "arXiv:2105.13626, arXiv:1808.06226",
       .provides = {"resume.bitwise"}});
}
