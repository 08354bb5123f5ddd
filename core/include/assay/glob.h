// Name globs: how options pick parameters ("model.layers.*.mlp.*"), and the refusal of one that
// picks nothing.
#pragma once

#include <fnmatch.h>

#include <algorithm>
#include <string>
#include <vector>

#include "assay/error.h"

namespace assay {

/// `*` any text, `?` one character, `[ab]` one of a set; dots are ordinary.
inline bool matches(const std::string& glob, const std::string& name) {
  return ::fnmatch(glob.c_str(), name.c_str(), 0) == 0;
}

inline bool matches_any(const std::vector<std::string>& globs, const std::string& name) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return matches(glob, name); });
}

/// Throws Error `[id]` for a glob of `option` that matches no name of `named` (a range of things
/// with a `name`): it would be ignored in silence.
template <class Named>
void check_globs(const std::string& id, const std::string& component, const std::string& option,
                 const std::vector<std::string>& globs, const Named& named) {
  for (const std::string& glob : globs) {
    const bool used = std::any_of(named.begin(), named.end(),
                                  [&](const auto& item) { return matches(glob, item.name); });
    if (used) continue;
    const std::string like = named.empty() ? "" : ", such as '" + named.front().name + "'";
    throw Error(
        "[" + id + "] " + component + ": '" + glob + "' of " + option + " matches no parameter",
        "globs match whole names" + like + "; remove it or write *" + glob + "*");
  }
}

}  // namespace assay
