// Context: what every command shares: global flags, streams, exit code, and the ways to the
// plugins.
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "core/grid/components.h"
#include "core/grid/plan.h"

namespace assay::cli {

enum class Color { automatic, always, never };

struct Context {
  std::filesystem::path database = "results/assay.db";
  bool json = false;
  int verbosity = 0;  ///< -q: -1, -v: 1
  Color color = Color::automatic;
  std::vector<std::filesystem::path> plugin_path;
  int exit_code = 0;

  std::ostream* out = nullptr;  ///< data
  std::ostream* err = nullptr;  ///< progress and diagnostics

  /// Replaced by tests; by default the installed plugins, binaries and this machine.
  std::function<std::unique_ptr<grid::Components>(const std::vector<std::filesystem::path>&)>
      components;
  /// The plugins of these folders and no others.
  std::function<std::unique_ptr<grid::Components>(const std::vector<std::filesystem::path>&)>
      exact_components;
  std::function<grid::Binaries()> binaries;
  std::function<grid::Machine()> machine;

  /// Whether `stream` carries colour: as --color says, else a terminal's unless NO_COLOR is set.
  bool colored(const std::ostream& stream) const;
};

/// Writes to the process's streams and looks for plugins where plugin-boundary.md 8 says.
Context default_context();

/// A request for `grid::plan()` wired to the context's plugins, binaries and machine. Plugins
/// are looked for when the plan asks for them, and live as long as the request.
grid::PlanRequest plan_request(const Context& context, const std::filesystem::path& file);

/// Parses the arguments, runs one command and gives the exit code; every error is printed.
int run_cli(int argc, const char* const* argv, Context& context);

}  // namespace assay::cli
