// The two ways of `assay gate`: two plugin sets that run in one study, two databases that only
// read.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/cli/context.h"
#include "core/evidence/gate.h"

namespace assay::cli {

struct GateArguments {
  std::filesystem::path file{};  ///< the study
  std::filesystem::path baseline_plugins{}, candidate_plugins{};
  std::filesystem::path baseline_db{}, candidate_db{};
  std::string study{};   ///< of two databases: its name (default: the newest)
  std::string anchor{};  ///< rolling, release; empty: both
  std::string budget{};  ///< "15m"
  std::vector<std::filesystem::path> accepted{};  ///< more files with acceptance records
  bool strict = false;
};

/// What the gate saw.
struct GateReport {
  std::string study{};
  std::vector<evidence::GateCell> cells{};
  std::vector<evidence::GateFinding> findings{};
  bool timed = false;  ///< step time was gated
};

GateReport gate_plugins(const GateArguments& arguments, Context& context);
GateReport gate_databases(const GateArguments& arguments, Context& context);

/// "<study file without .yaml>.accepted.json": where `gate accept` leaves records to be committed.
std::filesystem::path acceptance_file(const std::filesystem::path& study_file);
std::vector<evidence::Accepted> read_acceptances(const std::filesystem::path& file);

void print_gate(const GateReport& report, const Context& context);

}  // namespace assay::cli
