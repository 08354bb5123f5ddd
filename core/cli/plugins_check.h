// `assay plugins check`: the conformance suites of a plugin, one process per test.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>

namespace assay::cli {

struct CheckOptions {
  std::string filter{};     ///< GoogleTest's: "optim/lion.*"
  bool list = false;        ///< names only
  bool in_process = false;  ///< all tests in one process (for a debugger)
};

/// 0 passed, 1 failed, 2 refused before loading, 4 crashed or timed out.
int check_plugin(const std::filesystem::path& file, const CheckOptions& options, std::ostream& out,
                 std::ostream& err);

}  // namespace assay::cli
