// The statements of a merge. "other" is the attached file; integer ids are mapped by content keys
// in temporary tables.
#include "core/store/merge.h"

#include <sqlite3.h>

#include "assay/error.h"
#include "core/store/connection.h"
#include "core/store/reader.h"

namespace assay::store {
namespace {

// Studies to take; ?1 = name or NULL.
constexpr const char* kPickStudies =
    "INSERT INTO temp.pick_study SELECT study_id FROM other.studies WHERE ?1 IS NULL OR name=?1";

constexpr const char* kTables = R"(
CREATE TEMP TABLE pick_study(old INTEGER PRIMARY KEY);
CREATE TEMP TABLE map_study(old INTEGER PRIMARY KEY, new INTEGER);
CREATE TEMP TABLE pick_cell(cell_id TEXT PRIMARY KEY);
CREATE TEMP TABLE map_plugin(old INTEGER PRIMARY KEY, new INTEGER);
CREATE TEMP TABLE map_supervisor(old INTEGER PRIMARY KEY, new INTEGER);
CREATE TEMP TABLE map_run(old INTEGER PRIMARY KEY, new INTEGER);
CREATE TEMP TABLE map_attempt(old INTEGER PRIMARY KEY, new INTEGER);
CREATE TEMP TABLE fresh(yes INTEGER);
INSERT INTO fresh SELECT NOT EXISTS(SELECT 1 FROM main.runs);
)";

constexpr const char* kPlan = R"(
INSERT OR IGNORE INTO main.env SELECT * FROM other.env;
INSERT OR IGNORE INTO main.plugins(name, kind, version, abi, path, sha256, build_type)
  SELECT name, kind, version, abi, path, sha256, build_type FROM other.plugins;
INSERT INTO temp.map_plugin SELECT o.plugin_id, n.plugin_id FROM other.plugins o
  JOIN main.plugins n ON n.sha256=o.sha256 AND n.path=o.path;
INSERT OR IGNORE INTO main.studies(name, yaml_sha256, yaml_text, resolved_json, nuisance_json, created_us)
  SELECT name, yaml_sha256, yaml_text, resolved_json, nuisance_json, created_us
  FROM other.studies JOIN temp.pick_study ON old=study_id;
INSERT INTO temp.map_study SELECT o.study_id, n.study_id FROM other.studies o
  JOIN temp.pick_study ON old=o.study_id JOIN main.studies n ON n.name=o.name AND n.yaml_sha256=o.yaml_sha256;
INSERT INTO temp.pick_cell SELECT DISTINCT cell_id FROM other.study_cells JOIN temp.pick_study ON old=study_id;
INSERT OR IGNORE INTO main.cells SELECT c.* FROM other.cells c JOIN temp.pick_cell USING(cell_id);
INSERT OR IGNORE INTO main.study_cells SELECT m.new, s.cell_id, s.ordinal, s.slug, s.repeats
  FROM other.study_cells s JOIN temp.map_study m ON m.old=s.study_id;
INSERT OR IGNORE INTO main.cell_axis SELECT m.new, a.cell_id, a.key, a.label, a.value_json
  FROM other.cell_axis a JOIN temp.map_study m ON m.old=a.study_id
  WHERE EXISTS(SELECT 1 FROM main.study_cells s WHERE s.study_id=m.new AND s.cell_id=a.cell_id);
INSERT OR IGNORE INTO main.plan_skips SELECT m.new, p.seq, p.slug, p.line, p.reason, p.rule, p.rule_id
  FROM other.plan_skips p JOIN temp.map_study m ON m.old=p.study_id;
)";

// A supervisor is the same when boot, process and start are.
constexpr const char* kSupervisors = R"(
INSERT INTO main.supervisors(study_id, env_id, argv_json, boot_id, pid, pid_start, started_us, heartbeat_us,
  ended_us, end_reason) SELECT m.new, o.env_id, o.argv_json, o.boot_id, o.pid, o.pid_start, o.started_us,
  o.heartbeat_us, coalesce(o.ended_us, o.heartbeat_us), coalesce(o.end_reason, 'merged')
  FROM other.supervisors o LEFT JOIN temp.map_study m ON m.old=o.study_id
  WHERE NOT EXISTS(SELECT 1 FROM main.supervisors n WHERE n.boot_id=o.boot_id AND n.pid=o.pid
    AND n.pid_start=o.pid_start AND n.started_us=o.started_us) AND EXISTS(SELECT 1 FROM other.attempts a
    JOIN other.runs r USING(run_id) JOIN temp.pick_cell USING(cell_id) WHERE a.supervisor_id=o.supervisor_id);
INSERT INTO temp.map_supervisor SELECT o.supervisor_id, min(n.supervisor_id) FROM other.supervisors o
  JOIN main.supervisors n ON n.boot_id=o.boot_id AND n.pid=o.pid AND n.pid_start=o.pid_start
  AND n.started_us=o.started_us GROUP BY o.supervisor_id;
)";

// Runs that wait come as queued; ended ones are taken where nothing has run yet. An empty file
// keeps the numbers of runs and attempts, so that an export is spoken of as the original is.
constexpr const char* kRuns = R"(
INSERT OR IGNORE INTO main.runs(run_id, cell_id, machine_id, purpose, block, slot, state, state_us)
  SELECT iif((SELECT yes FROM temp.fresh), run_id, NULL), cell_id, machine_id, purpose, block, slot, 'queued',
  state_us FROM other.runs JOIN temp.pick_cell USING(cell_id) WHERE block=0 ORDER BY run_id;
INSERT INTO temp.map_run SELECT o.run_id, n.run_id FROM other.runs o JOIN temp.pick_cell USING(cell_id)
  JOIN main.runs n ON n.cell_id=o.cell_id AND n.machine_id=o.machine_id AND n.purpose=o.purpose
  AND n.block=o.block AND n.slot=o.slot WHERE o.state NOT IN('queued','running') AND n.state='queued'
  AND NOT EXISTS(SELECT 1 FROM main.attempts a WHERE a.run_id=n.run_id);
UPDATE main.runs SET (state, state_us, supervisor_id)=(SELECT o.state, o.state_us, s.new
  FROM temp.map_run m JOIN other.runs o ON o.run_id=m.old LEFT JOIN temp.map_supervisor s
  ON s.old=o.supervisor_id WHERE m.new=main.runs.run_id) WHERE run_id IN(SELECT new FROM temp.map_run);
INSERT INTO main.attempts(attempt_id, run_id, n, supervisor_id, env_id, state, started_us, heartbeat_us, ended_us, pgid,
  pid, pid_start, exit_code, signal, reason, detail, last_phase, last_step, last_bytes, stderr_tail, log_path,
  log_bytes, log_sha256, timed, resumed_step, steady_first, steady_last, steady_method)
  SELECT iif((SELECT yes FROM temp.fresh), a.attempt_id, NULL), m.new, a.n, s.new, a.env_id, a.state, a.started_us, a.heartbeat_us, a.ended_us, a.pgid, a.pid,
  a.pid_start, a.exit_code, a.signal, a.reason, a.detail, a.last_phase, a.last_step, a.last_bytes,
  a.stderr_tail, a.log_path, a.log_bytes, a.log_sha256, a.timed, a.resumed_step, a.steady_first,
  a.steady_last, a.steady_method FROM other.attempts a JOIN temp.map_run m ON m.old=a.run_id
  JOIN temp.map_supervisor s ON s.old=a.supervisor_id WHERE a.state<>'running' ORDER BY a.attempt_id;
INSERT INTO temp.map_attempt SELECT a.attempt_id, n.attempt_id FROM other.attempts a
  JOIN temp.map_run m ON m.old=a.run_id JOIN main.attempts n ON n.run_id=m.new AND n.n=a.n;
INSERT INTO main.attempt_plugins SELECT m.new, p.new, a.role, a.git FROM other.attempt_plugins a
  JOIN temp.map_attempt m ON m.old=a.attempt_id JOIN temp.map_plugin p ON p.old=a.plugin_id;
)";

/// Tables whose first column is attempt_id and which are copied as they are.
constexpr const char* kSamples[] = {"spool_files", "steps",  "samples",          "metrics",
                                    "collectives", "memory", "memory_categories"};

int64_t copy_samples(SQLite::Database& db, const std::string& table) {
  SQLite::Statement columns(
      db, "SELECT name FROM pragma_table_info('" + table + "') WHERE name<>'attempt_id'");
  std::string list;
  while (columns.executeStep()) list += ", " + columns.getColumn(0).getString();
  std::string from = list;
  for (size_t at = from.find(", "); at != std::string::npos; at = from.find(", ", at + 4)) {
    from.replace(at, 2, ", o.");
  }
  return execute(db, ("INSERT INTO main." + table + "(attempt_id" + list + ") SELECT m.new" + from +
                      " FROM other." + table + " o JOIN temp.map_attempt m ON m.old=o.attempt_id")
                         .c_str());
}

class Attached {
 public:
  Attached(SQLite::Database& db, const std::filesystem::path& file) : db_(db) {
    execute(db, "ATTACH DATABASE ?1 AS other", file.string());
    db.exec(kTables);
  }
  ~Attached() {
    try {
      for (const char* table : {"pick_study", "map_study", "pick_cell", "map_plugin",
                                "map_supervisor", "map_run", "map_attempt", "fresh"}) {
        db_.exec(std::string("DROP TABLE temp.") + table);
      }
      db_.exec("DETACH DATABASE other");
    } catch (const SQLite::Exception&) {
      // the connection ends with the command; nothing is lost
    }
  }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;

 private:
  SQLite::Database& db_;
};

MergeResult copy_all(SQLite::Database& db, const std::optional<std::string>& study) {
  MergeResult result;
  execute(db, kPickStudies, study);
  db.exec(kPlan);
  db.exec(kSupervisors);
  db.exec(kRuns);
  for (const char* table : kSamples) {
    const int64_t rows = copy_samples(db, table);
    if (std::string_view(table) == "steps") result.steps = rows;
  }
  result.studies = *one(db, "SELECT count(*) FROM temp.map_study");
  result.cells = *one(db, "SELECT count(*) FROM temp.pick_cell");
  result.runs = *one(db, "SELECT count(*) FROM temp.map_run");
  const int64_t ended = *one(db,
                             "SELECT count(*) FROM other.runs JOIN temp.pick_cell USING(cell_id)"
                             " WHERE state NOT IN('queued','running')");
  result.runs_kept = ended - result.runs;
  return result;
}

}  // namespace

MergeResult merge(Store& into, const std::filesystem::path& from,
                  const std::optional<std::string>& study) {
  const Reader other(from);  // refuses foreign files and other versions, with the right words
  if (study) other.study(*study);
  std::error_code ignored;
  if (std::filesystem::equivalent(from, into.file(), ignored)) {
    throw Error("'" + from.string() + "' is the database itself; nothing to merge");
  }
  const Connection& connection = into.connection();
  return connection.read([&](SQLite::Database& raw) {
    const Attached attached(raw, from);
    return connection.write([&](SQLite::Database& db) { return copy_all(db, study); });
  });
}

void relocate_logs(Store& store, const std::filesystem::path& folder) {
  const char* const base_name =
      "replace({0}, rtrim({0}, replace({0}, '/', '')), '')";  // what follows the last slash
  store.connection().write([&](SQLite::Database& db) {
    for (const auto& [table, column] :
         {std::pair("attempts", "log_path"), std::pair("spool_files", "path")}) {
      std::string name = base_name;
      for (size_t at = name.find("{0}"); at != std::string::npos; at = name.find("{0}")) {
        name.replace(at, 3, column);
      }
      execute(db,
              (std::string("UPDATE ") + table + " SET " + column +
               "=?1 || '/' || attempt_id || '/' || " + name + " WHERE " + column + " IS NOT NULL")
                  .c_str(),
              folder.string());
    }
  });
}

}  // namespace assay::store
