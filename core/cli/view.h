// View: the few things that the reading commands share.
#pragma once

#include <memory>
#include <string>

#include "core/cli/context.h"
#include "core/store/reader.h"

namespace CLI {
class App;
}

namespace assay::cli {

/// Columns of the terminal behind stdout; 100 when it is none.
int terminal_width();
bool terminal_on_stdout();

/// "3 s ago", "2 min ago", "5 h ago"
std::string print_age(int64_t us, int64_t now_us);

/// Adds the optional positional STUDY (the newest one if left out).
void add_study_argument(CLI::App& command, std::string& study);

/// " --db F" unless it is the default: for commands that are printed to be typed.
std::string database_flag(const Context& context);

/// The named study, or the newest.
store::StudyInfo chosen_study(const store::Reader& reader, const std::string& name);

}  // namespace assay::cli
