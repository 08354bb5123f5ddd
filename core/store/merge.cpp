// The statements of a merge. "other" is the attached file; integer ids are mapped by content keys
// in temporary tables.
#include "core/store/merge.h"

#include <sqlite3.h>

#include "assay/error.h"
#include "core/store/connection.h"
#include "core/store/reader.h"

namespace assay::store {
namespace {

// Studies to take; ?1 = name or NULL. A tuned study comes with its trials. Comparisons may be of
// cells of an older plan.
constexpr const char* kPickStudies =
    "INSERT INTO temp.pick_study SELECT study_id FROM other.studies WHERE ?1 IS NULL OR name IN(?1,"
    " ?1 || '-tune')";

constexpr const char* kTables = R"(
CREATE TEMP TABLE pick_study(old INTEGER PRIMARY KEY);
CREATE TEMP TABLE map_study(old INTEGER PRIMARY KEY, new INTEGER);
CREATE TEMP TABLE pick_cell(cell_id TEXT PRIMARY KEY);
CREATE TEMP TABLE map_plugin(old INTEGER PRIMARY KEY, new INTEGER);
CREATE TEMP TABLE map_supervisor(old INTEGER PRIMARY KEY, new INTEGER);
CREATE TEMP TABLE map_comparison(old INTEGER PRIMARY KEY, new INTEGER, judged INTEGER);
CREATE TEMP TABLE same_run(old INTEGER PRIMARY KEY, new INTEGER);
CREATE TEMP TABLE begun_here(run INTEGER PRIMARY KEY);
CREATE TEMP TABLE open_there(run INTEGER PRIMARY KEY);
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
INSERT INTO temp.pick_cell SELECT cell_id FROM other.study_cells JOIN temp.pick_study ON old=study_id
  UNION SELECT base_cell FROM other.comparisons JOIN temp.pick_study ON old=study_id
  UNION SELECT cand_cell FROM other.comparisons JOIN temp.pick_study ON old=study_id;
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

// A comparison is the same when study and cells are. Pairs of two machines are never one
// comparison: where it has pairs of another machine, those of the other file stay out, and with
// them comparisons that share their control pairs. `judged`: its verdicts rest on a pair that the
// other file has not, so they stay.
constexpr const char* kComparisons = R"(
INSERT INTO main.comparisons(comparison_id, study_id, label, base_cell, cand_cell, design_json, loss_tier, created_us)
  SELECT iif((SELECT yes FROM temp.fresh) AND NOT EXISTS(SELECT 1 FROM main.comparisons), o.comparison_id, NULL),
  m.new, o.label, o.base_cell, o.cand_cell, o.design_json, o.loss_tier, o.created_us
  FROM other.comparisons o JOIN temp.map_study m ON m.old=o.study_id
  WHERE NOT EXISTS(SELECT 1 FROM main.comparisons n WHERE n.study_id=m.new AND n.base_cell=o.base_cell
    AND n.cand_cell=o.cand_cell) ORDER BY o.comparison_id;
INSERT INTO temp.map_comparison SELECT o.comparison_id, min(n.comparison_id), 0 FROM other.comparisons o
  JOIN temp.map_study m ON m.old=o.study_id JOIN main.comparisons n ON n.study_id=m.new
  AND n.base_cell=o.base_cell AND n.cand_cell=o.cand_cell GROUP BY o.comparison_id;
DELETE FROM temp.map_comparison WHERE EXISTS(SELECT 1 FROM main.pairs p JOIN main.runs r ON r.run_id=p.run_a
  WHERE p.comparison_id=new AND r.machine_id NOT IN(SELECT q.machine_id FROM other.pairs x
    JOIN other.runs q ON q.run_id=x.run_a WHERE x.comparison_id=old));
DELETE FROM temp.map_comparison WHERE EXISTS(SELECT 1 FROM other.pairs x JOIN other.runs q ON q.run_id=x.run_a
  WHERE x.comparison_id=old AND q.block NOT IN(SELECT old FROM temp.map_comparison));
UPDATE temp.map_comparison SET judged=EXISTS(SELECT 1 FROM main.pairs p WHERE p.comparison_id=new
  AND p.value_a IS NOT NULL AND NOT EXISTS(SELECT 1 FROM other.pairs x WHERE x.comparison_id=old
    AND x.stage=p.stage AND x.idx=p.idx AND x.statistic=p.statistic AND x.value_a=p.value_a AND x.value_b=p.value_b));
)";

// Runs that wait come as queued; ended ones are taken where nothing has run yet. An empty file
// keeps the numbers of runs and attempts, so that an export is spoken of as the original is. A pair
// is taken whole or not at all: neither when one of its runs has begun here nor before both ended.
constexpr const char* kRuns = R"(
INSERT OR IGNORE INTO main.runs(run_id, cell_id, machine_id, purpose, block, slot, state, state_us)
  SELECT iif((SELECT yes FROM temp.fresh), run_id, NULL), cell_id, machine_id, purpose, coalesce(m.new, 0), slot,
  'queued', state_us FROM other.runs JOIN temp.pick_cell USING(cell_id) LEFT JOIN temp.map_comparison m ON m.old=block
  WHERE block=0 OR m.new IS NOT NULL ORDER BY run_id;
INSERT INTO temp.same_run SELECT o.run_id, n.run_id FROM other.runs o JOIN temp.pick_cell USING(cell_id)
  LEFT JOIN temp.map_comparison m ON m.old=o.block JOIN main.runs n ON n.cell_id=o.cell_id
  AND n.machine_id=o.machine_id AND n.purpose=o.purpose AND n.block=coalesce(m.new, 0) AND n.slot=o.slot
  WHERE o.block=0 OR m.new IS NOT NULL;
INSERT OR IGNORE INTO temp.begun_here WITH begun AS (SELECT p.run_a, p.run_b FROM main.pairs p
  JOIN main.runs a ON a.run_id=p.run_a JOIN main.runs b ON b.run_id=p.run_b WHERE a.state<>'queued' OR b.state<>'queued'
  OR EXISTS(SELECT 1 FROM main.attempts t WHERE t.run_id IN(p.run_a, p.run_b)))
  SELECT run_a FROM begun UNION SELECT run_b FROM begun;
INSERT OR IGNORE INTO temp.open_there WITH open AS (SELECT p.run_a, p.run_b FROM other.pairs p
  JOIN other.runs a ON a.run_id=p.run_a JOIN other.runs b ON b.run_id=p.run_b
  WHERE a.state IN('queued','running') OR b.state IN('queued','running'))
  SELECT run_a FROM open UNION SELECT run_b FROM open;
INSERT INTO temp.map_run SELECT s.old, s.new FROM temp.same_run s JOIN other.runs o ON o.run_id=s.old
  JOIN main.runs n ON n.run_id=s.new WHERE o.state NOT IN('queued','running') AND n.state='queued'
  AND NOT EXISTS(SELECT 1 FROM main.attempts a WHERE a.run_id=n.run_id)
  AND n.run_id NOT IN(SELECT run FROM temp.begun_here) AND o.run_id NOT IN(SELECT run FROM temp.open_there);
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

// What pairs came to, with the runs that were taken; verdicts that rest on them. Figures of the
// gate, and the trials of a study, are kept where they are set already.
constexpr const char* kJudgements = R"(
INSERT OR IGNORE INTO main.pairs(comparison_id, stage, idx, orientation, statistic, run_a, run_b, quality_json)
  SELECT m.new, p.stage, p.idx, p.orientation, p.statistic, a.new, b.new, '{}' FROM other.pairs p
  JOIN temp.map_comparison m ON m.old=p.comparison_id JOIN temp.same_run a ON a.old=p.run_a
  JOIN temp.same_run b ON b.old=p.run_b;
UPDATE main.pairs SET value_a=p.value_a, value_b=p.value_b, d=p.d, change_pct=p.change_pct, discarded=p.discarded,
  discard_reason=p.discard_reason, quality_json=p.quality_json FROM other.pairs p
  JOIN temp.map_comparison m ON m.old=p.comparison_id JOIN temp.map_run a ON a.old=p.run_a
  JOIN temp.map_run b ON b.old=p.run_b WHERE pairs.comparison_id=m.new AND pairs.stage=p.stage AND pairs.idx=p.idx
  AND pairs.statistic=p.statistic AND pairs.run_a=a.new AND pairs.run_b=b.new;
UPDATE temp.map_comparison SET judged=1 WHERE NOT EXISTS(SELECT 1 FROM main.pairs p JOIN temp.map_run r
  ON r.new=p.run_a WHERE p.comparison_id=map_comparison.new) AND EXISTS(SELECT 1 FROM main.verdicts v
  WHERE v.comparison_id=map_comparison.new);
DELETE FROM main.verdicts WHERE comparison_id IN(SELECT new FROM temp.map_comparison WHERE NOT judged);
DELETE FROM main.lint WHERE comparison_id IN(SELECT new FROM temp.map_comparison WHERE NOT judged);
INSERT INTO main.verdicts(comparison_id, metric, stage, verdict, reason, n_used, n_discarded, estimate, ci_lo, ci_hi,
  ci_level, p_greater, p_less, p_same, p_adjusted, min_effect, same_margin, mde, sd, sd_robust, control_verdict,
  method_id, labels_json, computed_us, code_version)
  SELECT m.new, v.metric, v.stage, v.verdict, v.reason, v.n_used, v.n_discarded, v.estimate, v.ci_lo, v.ci_hi,
  v.ci_level, v.p_greater, v.p_less, v.p_same, v.p_adjusted, v.min_effect, v.same_margin, v.mde, v.sd, v.sd_robust,
  v.control_verdict, v.method_id, v.labels_json, v.computed_us, v.code_version FROM other.verdicts v
  JOIN temp.map_comparison m ON m.old=v.comparison_id WHERE NOT m.judged ORDER BY v.verdict_id;
INSERT INTO main.lint SELECT m.new, l.rule, l.value_a, l.value_b, l.overridden_by FROM other.lint l
  JOIN temp.map_comparison m ON m.old=l.comparison_id WHERE NOT m.judged;
INSERT OR IGNORE INTO main.trials SELECT m.new, t.arm, t.idx, r.new, t.value_json, t.score, t.chosen
  FROM other.trials t JOIN temp.map_study m ON m.old=t.study_id JOIN temp.same_run r ON r.old=t.run_id
  WHERE m.new NOT IN(SELECT study_id FROM main.trials);
INSERT OR IGNORE INTO main.baselines SELECT b.machine_id, b.gate, b.config_id, b.metric, b.anchor, b.value, r.new,
  b.set_us FROM other.baselines b LEFT JOIN temp.same_run r ON r.old=b.run_id
  WHERE b.config_id IN(SELECT config_id FROM other.cells JOIN temp.pick_cell USING(cell_id));
INSERT INTO main.acceptances(machine_id, gate, config_id, metric, old_value, new_value, commit_sha, author, reason, made_us)
  SELECT o.machine_id, o.gate, o.config_id, o.metric, o.old_value, o.new_value, o.commit_sha, o.author, o.reason, o.made_us
  FROM other.acceptances o WHERE o.config_id IN(SELECT config_id FROM other.cells JOIN temp.pick_cell USING(cell_id))
  AND NOT EXISTS(SELECT 1 FROM main.acceptances n WHERE n.machine_id=o.machine_id AND n.gate=o.gate
    AND n.config_id=o.config_id AND n.metric=o.metric AND n.commit_sha=o.commit_sha AND n.made_us=o.made_us)
  ORDER BY o.acceptance_id;
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
                                "map_supervisor", "map_comparison", "same_run", "begun_here",
                                "open_there", "map_run", "map_attempt", "fresh"}) {
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
  db.exec(kComparisons);
  db.exec(kSupervisors);
  const auto pairs = [&] { return *one(db, "SELECT count(*) FROM main.pairs"); };
  const int64_t pairs_before = pairs();
  db.exec(kRuns);
  for (const char* table : kSamples) {
    const int64_t rows = copy_samples(db, table);
    if (std::string_view(table) == "steps") result.steps = rows;
  }
  db.exec(kJudgements);
  result.comparisons = *one(db, "SELECT count(*) FROM temp.map_comparison");
  result.pairs = pairs() - pairs_before;
  result.studies = *one(db, "SELECT count(*) FROM temp.map_study");
  result.cells = *one(db, "SELECT count(*) FROM temp.pick_cell");
  result.runs = *one(db, "SELECT count(*) FROM temp.map_run");
  const int64_t ended = *one(db,
                             "SELECT count(*) FROM other.runs JOIN temp.pick_cell USING(cell_id)"
                             " WHERE state NOT IN('queued','running')");
  result.runs_kept = *one(db,
                          "SELECT count(*) FROM temp.same_run s JOIN other.runs o ON"
                          " o.run_id=s.old JOIN main.runs n ON n.run_id=s.new WHERE o.state NOT IN"
                          "('queued','running') AND n.state<>'queued' AND s.old NOT IN(SELECT old"
                          " FROM temp.map_run)");
  result.runs_left_out = ended - result.runs - result.runs_kept;
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
