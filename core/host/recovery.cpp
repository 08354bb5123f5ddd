// Dead supervisors: left-over process groups, spools, states.
#include "core/host/recovery.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/base/clock.h"
#include "core/base/files.h"
#include "core/base/process_stat.h"
#include "core/base/spool.h"
#include "core/evidence/settle.h"
#include "core/host/attempt.h"
#include "core/store/reader.h"
#include "core/store/spool_import.h"

namespace assay::host {
namespace {

constexpr size_t kIdDigits = 12;
constexpr std::array<const char*, 4> kRecordedPrecedence = {"oom", "fail", "invalid", "infra"};

/// By its log if it came that far, else by the cell: another study may have named the folder.
std::filesystem::path folder_of(const store::Reader& reader, const store::OpenAttempt& attempt,
                                const std::filesystem::path& results) {
  if (attempt.log_path) return std::filesystem::path(*attempt.log_path).parent_path();
  const auto table = reader.query("SELECT slot, purpose, block FROM runs WHERE run_id=?1",
                                  {store::Value(attempt.run_id)});
  store::QueuedRun run{.cell_id = attempt.cell_id, .slug = attempt.slug};
  if (!table.empty()) {
    run.slot = store::integer(table.at(0, "slot")).value_or(0);
    run.purpose = store::text(table.at(0, "purpose")).value_or("");
    run.block = store::integer(table.at(0, "block")).value_or(0);
  }
  auto folder = attempt_folder(results, run, attempt.n);
  std::error_code missing;
  for (const auto& cell : std::filesystem::directory_iterator(results / "runs", missing)) {
    if (!cell.path().string().ends_with("--" + attempt.cell_id.substr(0, kIdDigits))) continue;
    if (std::filesystem::exists(cell.path() / folder.filename())) {
      return cell.path() / folder.filename();
    }
  }
  return folder;
}

int world_in(const std::filesystem::path& folder) {
  const auto file = folder / "cell.json";
  if (!std::filesystem::exists(file)) return 0;
  const auto cell = nlohmann::json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  return cell.is_object() ? cell.value("world", 1) : 0;
}

/// Imports what the ranks left; the state that their close rows record, nothing if one is missing.
std::optional<std::string> recorded_state(store::Store& store, const store::OpenAttempt& attempt,
                                          const std::filesystem::path& folder) {
  const int world = world_in(folder);
  std::vector<std::string> outcomes;
  for (int rank = 0; rank < world; ++rank) {
    const auto file = spool_path(folder, attempt.attempt_id, rank);
    if (!std::filesystem::exists(file)) continue;
    const auto import = store::import_spool(store, attempt.attempt_id, rank, file);
    const auto outcome = spool_outcome(file);
    if (outcome && import.position.complete() && !import.corrupt) outcomes.push_back(*outcome);
  }
  if (world == 0 || outcomes.size() < static_cast<size_t>(world)) return std::nullopt;
  for (const char* state : kRecordedPrecedence) {
    if (std::find(outcomes.begin(), outcomes.end(), state) != outcomes.end()) return state;
  }
  return "ok";
}

store::AttemptEnd settle(store::Store& store, const store::OpenAttempt& attempt,
                         const std::filesystem::path& folder) {
  const std::string who = "supervisor pid " + std::to_string(attempt.supervisor.pid) + " died";
  const auto state = recorded_state(store, attempt, folder);
  if (!state) return {.state = "killed", .reason = who};
  if (*state != "ok") return {.state = *state, .reason = "as its spool recorded; " + who};
  const auto settled = evidence::settle(store, attempt.attempt_id);
  if (settled.violations.empty()) return {.state = "ok"};
  return {.state = "invalid", .reason = settled.violations.front().text};
}

}  // namespace

std::filesystem::path attempt_folder(const std::filesystem::path& results,
                                     const store::QueuedRun& run, int64_t n) {
  const bool plain = run.block == 0 && (run.purpose.empty() || run.purpose == "measure");
  const std::string head = plain ? "" : run.purpose + std::to_string(run.block) + "-";
  return results / "runs" / (run.slug + "--" + run.cell_id.substr(0, kIdDigits)) /
         (head + "r" + std::to_string(run.slot) + "." + std::to_string(n));
}

bool is_alive(const store::Supervisor& supervisor) {
  const auto pid = static_cast<int>(supervisor.pid);
  return supervisor.boot_id == boot_id() && process_start(pid) == supervisor.pid_start && runs(pid);
}

bool runs(int pid) { return process_stat(pid).runs(); }

bool is_import(const store::Supervisor& supervisor) {
  return supervisor.argv == std::vector<std::string>{kImportArgument};
}

std::vector<std::string> recover(store::Store& store) {
  std::vector<std::string> lines;
  const store::Reader reader(store.file());
  const auto results = std::filesystem::absolute(store.file()).parent_path();
  for (const store::OpenAttempt& attempt : store.open_attempts(std::nullopt)) {
    if (is_alive(attempt.supervisor) || is_import(attempt.supervisor)) continue;
    const auto folder = folder_of(reader, attempt, results);
    kill_left_over(folder, attempt.supervisor.boot_id);
    const store::AttemptEnd end = settle(store, attempt, folder);
    store.finish_attempt(attempt.attempt_id, end);
    lines.push_back("run " + std::to_string(attempt.run_id) + " (" + attempt.slug +
                    ") of a supervisor that died: " + end.state);
  }
  for (const store::Supervisor& supervisor : store.open_supervisors(std::nullopt)) {
    if (!is_alive(supervisor)) store.end_supervisor(supervisor.supervisor_id, "died");
  }
  return lines;
}

}  // namespace assay::host
