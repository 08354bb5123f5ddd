// Slugs.
#include "core/grid/labels.h"

#include <algorithm>

namespace assay::grid {
namespace {

constexpr size_t kLongestSlug = 80;

std::string folder_safe(const std::string& label) {
  std::string text;
  for (char c : label) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    const bool safe = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
    text += safe ? c : '-';
  }
  while (text.starts_with('.')) text.erase(0, 1);  // never a hidden folder, never ".."
  return text;
}

}  // namespace

std::string slug_of(std::vector<Pick> picks, const std::string& otherwise) {
  std::stable_sort(picks.begin(), picks.end(),
                   [](const Pick& a, const Pick& b) { return a.axis->id < b.axis->id; });
  std::string slug;
  for (const Pick& pick : picks) {
    std::string part = folder_safe(pick.point->label);
    if (pick.axis->name == "seed") part = "s" + part;
    if (part.empty()) continue;
    slug += (slug.empty() ? "" : "_") + part;
  }
  if (slug.empty()) slug = otherwise;
  return slug.substr(0, kLongestSlug);
}

}  // namespace assay::grid
