// What yaml-cpp's own marks and messages leave out: code points, lengths, open brackets, UTF-8.
#pragma once

#include <string>
#include <string_view>

#include "core/grid/node.h"

namespace assay::grid {

/// yaml-cpp's place (from 0, columns in bytes) as ours.
Mark mark_in(const Source& source, int line, int column_bytes);

/// A mark at "&name " or "!tag " moved to what follows on the same line.
Mark skip_properties(Mark mark);

/// Length of a scalar on its first line, quotes included.
int scalar_length(const Source& source, const Mark& mark, const Node& scalar);

/// False, with G02, for text that is not UTF-8 or holds control characters.
bool check_utf8(std::string_view text, const Source& source, Findings& findings);

/// Reports what yaml-cpp could not read as G02, with the bracket that stayed open.
void report_syntax(std::string_view text, const Source& source, int line, int column_bytes,
                   const std::string& message, Findings& findings);

}  // namespace assay::grid
