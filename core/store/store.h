// Store: the one writing connection to a results database (SQLite, WAL). Readers: reader.h.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/store/rows.h"
#include "core/store/table.h"

namespace assay::store {

/// Everything that is written goes through here, from one thread of the supervisor; workers never
/// open the database. Each method is one transaction: done and durable, or not done.
///
/// Errors: assay::Error with the file, the reason and the next step (read-only file or folder,
/// newer or older schema, network file system, another writer for more than 10 s);
/// assay::InfrastructureError when the disk is full: nothing of the call is stored, and the
/// spool still has its rows.
class Store {
 public:
  /// Opens for writing; creates the file, its folder and the current schema if it is missing.
  explicit Store(const std::filesystem::path& file);
  ~Store();
  Store(Store&&) noexcept;

  // ---- the plan ----
  void add_env(const Env& env);              ///< a known env_id is kept as it is
  int64_t add_plugin(const Plugin& plugin);  ///< id of the row with this (sha256, path)
  /// Study, cells, axes and skips. The same (name, yaml_sha256) gives the same id, its cells and
  /// skips are brought up to date; cells known from other studies are shared.
  int64_t add_study(const Study& study);

  // ---- supervisors ----
  int64_t start_supervisor(const Supervisor& supervisor);
  void heartbeat_supervisor(int64_t supervisor_id);
  void end_supervisor(int64_t supervisor_id, const std::string& reason);
  std::vector<Supervisor> open_supervisors(std::optional<int64_t> study_id) const;  ///< not ended

  // ---- runs ----
  /// Makes the missing runs of purpose `measure`, slots 0..repeats-1 of every cell, state queued;
  /// returns how many. Runs that exist, whatever their state, are kept.
  int64_t ensure_runs(int64_t study_id, const std::string& machine_id);
  /// One run of a cell, for `import`, pairs and trials; its id, made if it is missing.
  int64_t ensure_run(const std::string& cell_id, const std::string& machine_id,
                     const std::string& purpose = "measure", int64_t block = 0, int64_t slot = 0);
  std::vector<QueuedRun> queued(int64_t study_id, const std::string& machine_id) const;
  /// Takes a queued run: `running`, and its attempt row. BEGIN IMMEDIATE, so two supervisors never
  /// get the same run and never fail on each other's lock. Nothing if the queue is empty (or the
  /// asked run is no longer queued).
  std::optional<Claim> claim(const ClaimRequest& request);
  /// Puts runs of the study in one of `states` back into the queue; returns how many.
  int64_t requeue(int64_t study_id, const std::string& machine_id,
                  std::span<const std::string> states);
  void requeue_run(int64_t run_id);

  // ---- attempts ----
  void start_attempt(int64_t attempt_id, const AttemptStart& start);
  void add_attempt_plugins(int64_t attempt_id, std::span<const AttemptPlugin> plugins);
  void heartbeat(int64_t attempt_id, const AttemptProgress& progress);
  void finish_attempt(int64_t attempt_id, const AttemptEnd& end);
  /// Attempts in state running, of one study or of all.
  std::vector<OpenAttempt> open_attempts(std::optional<int64_t> study_id) const;

  // ---- spools ----
  SpoolPosition spool(int64_t attempt_id, int64_t rank) const;  ///< zeros if never imported
  /// Imports parsed rows (core/base/spool.h) and the byte offset behind them in one transaction, so
  /// a row is never stored twice and never lost. `offset` is the file position after the last row;
  /// rows are in the order of the file, from spool().bytes_imported on. `open` rows must name this
  /// attempt and rank, `close` sets rows_declared = its "rows" (the count of lines before the close
  /// line, `open` included). Numbers of `facts` become metrics named "fact.<key>.<key>", unit 1.
  /// Throws Error naming attempt, rank and row if one does not fit its table; nothing is stored.
  SpoolPosition import_rows(int64_t attempt_id, int64_t rank, const std::filesystem::path& path,
                            std::span<const nlohmann::json> rows, int64_t offset);

  // ---- figures ----
  /// Replaces figures by (attempt, name, rank). Non-finite values are kept as such.
  void put_metrics(int64_t attempt_id, std::span<const Metric> metrics);
  void set_steady(int64_t attempt_id, Int first, Int last, const std::string& method);

  /// At a clean end: optimises and truncates the write-ahead log.
  void checkpoint();

  const std::filesystem::path& file() const { return file_; }
  const Connection& connection() const { return *connection_; }  ///< for core/store's own parts
  /// Reads through the writing connection: sees what was just written.
  Table query(const std::string& sql, std::initializer_list<Value> parameters = {}) const;

 private:
  std::filesystem::path file_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace assay::store
