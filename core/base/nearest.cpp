// The near-miss rule: optimal string alignment distance, case ignored.
#include "core/base/nearest.h"

#include <algorithm>
#include <utility>

namespace assay {
namespace {

constexpr size_t kMostSuggestions = 3;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

/// Insertions, deletions, substitutions and swaps of neighbours, each of cost 1.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t cost = a[i - 1] != b[j - 1];
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + cost});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::vector<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  const std::string sought = lower(word);
  const size_t limit = std::max<size_t>(1, word.size() / 3);
  std::vector<std::pair<size_t, std::string>> found;
  for (const std::string& candidate : candidates) {
    const size_t gap =
        std::max(candidate.size(), sought.size()) - std::min(candidate.size(), sought.size());
    if (gap > limit) continue;
    const size_t far = distance(sought, lower(candidate));
    if (far <= limit) found.emplace_back(far, candidate);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(found.size(), kMostSuggestions); ++i) {
    names.push_back(found[i].second);
  }
  return names;
}

std::string did_you_mean(const std::vector<std::string>& candidates) {
  std::string text;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const bool last = i + 1 == candidates.size();
    text += i == 0 ? "did you mean " : last ? " or " : ", ";
    text += "'" + candidates[i] + "'";
  }
  return text.empty() ? text : text + "?";
}

}  // namespace assay
