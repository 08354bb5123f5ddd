// Recovery: what a supervisor that died left behind is killed, imported and settled.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/store/store.h"

namespace assay::host {

/// The folder of an attempt: <results>/runs/<slug>--<12 hex digits>/r<slot>.<n>; of pairs, controls
/// and others "pair<block>-r<slot>.<n>".
std::filesystem::path attempt_folder(const std::filesystem::path& results,
                                     const store::QueuedRun& run, int64_t n);

/// False iff the boot differs or no process has its pid and start time.
bool is_alive(const store::Supervisor& supervisor);

/// `assay import` has no processes of its own: its open attempts wait for the next import.
inline constexpr const char* kImportArgument = "import";
bool is_import(const store::Supervisor& supervisor);

/// False for a process that is gone, and for one that ended but was not waited for.
bool runs(int pid);

/// Ends every attempt and row of supervisors that are dead; one line per settled run. Spools whose
/// ranks all closed settle the run as recorded; anything else becomes `killed`.
std::vector<std::string> recover(store::Store& store);

}  // namespace assay::host
