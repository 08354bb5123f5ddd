// nearest: the "did you mean" rule, one for keys, commands, plugins, labels and enum values.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

/// Candidates within max(1, length / 3) of `word` by case-insensitive Damerau-Levenshtein
/// distance (optimal string alignment), nearest first, ties alphabetical, at most three.
std::vector<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

/// "did you mean 'a' or 'b'?", empty when there are none.
std::string did_you_mean(const std::vector<std::string>& candidates);

}  // namespace assay
