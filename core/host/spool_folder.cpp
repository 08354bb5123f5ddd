// From open rows to cells, runs and attempts.
#include "core/host/spool_folder.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>

#include "assay/error.h"
#include "core/base/clock.h"
#include "core/base/diagnostic.h"
#include "core/base/files.h"
#include "core/base/spool.h"
#include "core/evidence/settle.h"
#include "core/grid/plan.h"
#include "core/host/machine.h"
#include "core/host/recovery.h"
#include "core/host/study.h"
#include "core/store/reader.h"
#include "core/store/spool_import.h"

namespace assay::host {
namespace {

using nlohmann::json;

constexpr std::array<const char*, 5> kNeeded = {"cell_id", "recipe_id", "config_id", "config",
                                                "study"};
constexpr std::array<const char*, 4> kImportPrecedence = {"oom", "fail", "invalid", "infra"};

std::optional<json> open_row(const std::filesystem::path& file) {
  const SpoolChunk chunk = read_spool(file, 0, 1);
  if (chunk.rows.empty() || chunk.rows[0]["t"] != "open") return std::nullopt;
  return chunk.rows[0];
}

store::Int resumed_step(const json& open) {
  const auto step = open.find("resumed_step");
  return step == open.end() ? store::Int() : store::Int(step->get<int64_t>());
}

void require_identity(const std::filesystem::path& file, const json& open) {
  std::string missing;
  for (const char* key : kNeeded) {
    if (!open.contains(key)) missing += (missing.empty() ? "" : ", ") + std::string(key);
  }
  if (missing.empty()) return;
  throw DiagnosticError(
      Diagnostic{.id = "H07",
                 .place = file.string() + ":1",
                 .text = "the open row lacks " + missing + ": it is not known which cell this is",
                 .hints = {"start the ranks with a cell file that holds them"}});
}

void add_file(std::map<std::string, SpoolGroup>& groups, const std::filesystem::path& file) {
  const auto open = open_row(file);
  if (!open || open->value("attempt_id", int64_t{0}) != 0) return;
  require_identity(file, *open);
  const auto folder = file.parent_path();
  SpoolGroup& group = groups[folder.string() + "\n" + (*open)["cell_id"].get<std::string>()];
  const auto rank = static_cast<size_t>(open->value("rank", 0));
  group.folder = folder;
  group.world = std::max(1, world_of((*open)["config"]));
  group.files.resize(std::max({group.files.size(), rank + 1, static_cast<size_t>(group.world)}));
  group.files[rank] = file;
  if (group.open.is_null() || rank == 0) group.open = *open;
}

}  // namespace

std::vector<SpoolGroup> find_spool_groups(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) {
    throw Error("'" + folder.string() + "' is no folder",
                "give the folder that the ranks wrote their spools (*.jl) to");
  }
  std::map<std::string, SpoolGroup> groups;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::filesystem::absolute(folder))) {
    if (entry.path().extension() == ".jl") add_file(groups, entry.path().lexically_normal());
  }
  std::vector<SpoolGroup> list;
  for (auto& [key, group] : groups) list.push_back(std::move(group));
  return list;
}

SpoolImporter::SpoolImporter(store::Store& store, std::string study)
    : store_(store), study_(std::move(study)), env_(this_env(grid::installed_binaries().libtorch)) {
  store_.add_env(env_);
  supervisor_id_ = store_.start_supervisor({.env_id = env_.env_id,
                                            .argv = {kImportArgument},
                                            .boot_id = boot_id(),
                                            .pid = getpid(),
                                            .pid_start = process_start(getpid())});
}

SpoolImporter::~SpoolImporter() {
  try {
    store_.end_supervisor(supervisor_id_, "done");
  } catch (const std::exception&) {
    return;  // the next supervisor finds the process gone
  }
}

std::optional<SpoolImporter::Target> SpoolImporter::known(const SpoolGroup& group) const {
  const store::Reader reader(store_.file());
  for (const auto& file : group.files) {
    const auto rows = reader.query(
        "SELECT a.attempt_id, a.run_id, a.state FROM spool_files f JOIN attempts a"
        " USING(attempt_id) WHERE f.path=?1",
        {store::Value(file.string())});
    if (rows.empty()) continue;
    return Target{*store::integer(rows.at(0, "attempt_id")), *store::integer(rows.at(0, "run_id")),
                  *store::text(rows.at(0, "state"))};
  }
  return std::nullopt;
}

int64_t SpoolImporter::free_slot(const std::string& cell_id) const {
  const auto rows = store::Reader(store_.file())
                        .query(
                            "SELECT coalesce(max(slot)+1, 0) AS slot FROM runs WHERE cell_id=?1"
                            " AND machine_id=?2 AND purpose='measure' AND block=0",
                            {store::Value(cell_id), store::Value(env_.machine_id)});
  return *store::integer(rows.at(0, "slot"));
}

SpoolImporter::Target SpoolImporter::make_run(const SpoolGroup& group) {
  const json& open = group.open;
  const auto text = [&](const char* key) { return open.value(key, std::string()); };
  const std::string study = study_.empty() ? text("study") : study_;
  const store::Reader reader(store_.file());
  const auto known_cell = reader.query(
      "SELECT cell_id FROM study_cells s JOIN studies t"
      " USING(study_id) WHERE s.cell_id=?1 AND t.name=?2",
      {store::Value(text("cell_id")), store::Value(study)});
  int64_t study_id = 0;
  if (known_cell.empty()) {
    const json resolved = {{"study", study}, {"imported", text("cell_id")}};
    study_id =
        store_.add_study({.name = study,
                          .yaml_sha256 = sha256(resolved.dump()),
                          .resolved_json = resolved.dump(),
                          .cells = {{.cell_id = text("cell_id"),
                                     .recipe_id = text("recipe_id"),
                                     .config_id = text("config_id"),
                                     .config_json = open["config"].dump(),
                                     .binaries = open.value("binaries", json::object()),
                                     .data_fingerprint = text("data_fingerprint"),
                                     .slug = open.value("slug", text("cell_id").substr(0, 12))}}});
  } else {
    study_id = reader.study(study).study_id;
  }
  const int64_t run_id =
      store_.ensure_run(text("cell_id"), env_.machine_id, "measure", 0, free_slot(text("cell_id")));
  const auto claim = store_.claim({.study_id = study_id,
                                   .machine_id = env_.machine_id,
                                   .supervisor_id = supervisor_id_,
                                   .env_id = env_.env_id,
                                   .run_id = run_id,
                                   .resumed_step = resumed_step(open)});
  if (!claim) throw InfrastructureError("run " + std::to_string(run_id) + " was taken meanwhile");
  return {claim->attempt_id, run_id, "running"};
}

ImportedGroup SpoolImporter::import(const SpoolGroup& group) {
  const auto found = known(group);
  const Target target = found ? *found : make_run(group);
  ImportedGroup result{.slug = group.open.value("slug", group.open.value("cell_id", "")),
                       .run_id = target.run_id,
                       .state = target.state};
  std::vector<std::string> outcomes;
  for (size_t rank = 0; rank < group.files.size(); ++rank) {
    if (group.files[rank].empty()) continue;
    const auto import = store::import_spool(store_, target.attempt_id, static_cast<int64_t>(rank),
                                            group.files[rank]);
    result.rows += import.rows;
    if (import.corrupt) result.note = import.corrupt->place + ": " + import.corrupt->text;
    const auto outcome = spool_outcome(group.files[rank]);
    if (outcome && import.position.complete()) outcomes.push_back(*outcome);
  }
  if (target.state != "running" || outcomes.size() < static_cast<size_t>(group.world)) {
    return result;
  }
  result.state = "ok";
  for (const char* state : kImportPrecedence) {
    if (std::find(outcomes.begin(), outcomes.end(), state) == outcomes.end()) continue;
    result.state = state;
    break;
  }
  store::AttemptEnd end{.state = result.state};
  if (result.state == "ok") {
    const auto settled = evidence::settle(store_, target.attempt_id);
    if (!settled.violations.empty()) {
      end = {.state = "invalid", .reason = settled.violations.front().text};
      result.note = *end.reason;
    }
  }
  result.state = end.state;
  store_.finish_attempt(target.attempt_id, end);
  return result;
}

}  // namespace assay::host
