// A planned study into the database, and what the supervisor reads back from it.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/grid/plan.h"
#include "core/host/observer.h"
#include "core/store/reader.h"
#include "core/store/store.h"

namespace assay::host {

/// Writes study, cells, axes, skips and the plugins that the cells use; its study_id. The
/// execution keys travel in resolved_json under "execution", so that `resume` needs no file, and
/// the places of settings under "places".
int64_t store_plan(store::Store& store, const grid::Plan& plan);

/// The row of a plugin file as it is now; its plugin_id. Throws DiagnosticError for no plugin.
int64_t store_plugin(store::Store& store, const std::filesystem::path& file);

/// The execution keys that store_plan() left in `resolved_json`.
grid::RunKeys run_keys(const std::string& resolved_json);

/// A run with its state.
struct StudyRun {
  store::QueuedRun run{};
  std::string state{};
  std::string binaries_json{};
};

/// A row with run_id, cell_id, slug, config_json, purpose, block, ordinal, slot, attempts, state
/// and binaries_json.
StudyRun study_run_at(const store::Table& rows, size_t i);

/// All runs of purpose `measure` of the study on this machine, in the order of execution.
std::vector<StudyRun> study_runs(const store::Reader& reader, int64_t study_id,
                                 const std::string& machine_id);

/// Perturbed runs of the study's baselines (purpose `envelope`), by cell and number.
std::vector<StudyRun> envelope_runs(const store::Reader& reader, int64_t study_id,
                                    const std::string& machine_id);

/// Trials (purpose `tune`) of the study, by cell. A study of trials has no other runs.
std::vector<StudyRun> trial_runs(const store::Reader& reader, int64_t study_id,
                                 const std::string& machine_id);

/// Runs of any purpose by their ids, in this order; those of cells outside the study are left out.
std::vector<StudyRun> named_runs(const store::Reader& reader, int64_t study_id,
                                 std::span<const int64_t> run_ids);

/// How many runs are in which state.
Totals count_states(const std::vector<StudyRun>& runs);

/// A component's file, as a cell's binaries name it.
struct UsedPlugin {
  int64_t plugin_id = 0;
  std::string role{};  ///< "optim/lion"
  std::filesystem::path path{};
  store::Text git{};  ///< commit that it was built from, "+" if changed since; nothing if unknown
};

/// The files of a cell's plugins. Throws InfrastructureError naming the one that is gone, or whose
/// content is no longer what the cell was planned with.
std::vector<UsedPlugin> used_plugins(const store::Reader& reader, const std::string& binaries_json);

/// Ranks of a resolved configuration: the product of its mesh without ep.
int world_of(const nlohmann::json& config);

}  // namespace assay::host
