// Handshake: a plugin's note against this build's, every difference at once.
#pragma once

#include <optional>
#include <string>

#include "core/base/diagnostic.h"
#include "core/plugin/note.h"

namespace assay {

struct Verdict {
  std::optional<Diagnostic> refusal;  ///< P01
  std::vector<std::string> warnings;  ///< other compiler major version, debug build
};

/// `worker`: this build's note.
Verdict compare_notes(const Note& plugin, const Note& worker, const std::string& place);

}  // namespace assay
