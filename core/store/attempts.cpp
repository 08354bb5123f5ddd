// Store: attempts from start to end, their figures, and opening the database itself.
#include "assay/error.h"
#include "core/base/clock.h"
#include "core/store/connection.h"
#include "core/store/figure.h"
#include "core/store/store.h"

namespace assay::store {

Store::Store(const std::filesystem::path& file)
    : file_(file), connection_(std::make_unique<Connection>(Connection::writer(file))) {}
Store::~Store() = default;
Store::Store(Store&&) noexcept = default;

void Store::start_attempt(int64_t attempt_id, const AttemptStart& start) {
  connection_->write([&](SQLite::Database& db) {
    execute(db,
            "UPDATE attempts SET pgid=?2, pid=?3, pid_start=?4, log_path=?5, heartbeat_us=?6"
            " WHERE attempt_id=?1",
            attempt_id, start.pgid, start.pid, start.pid_start, start.log_path, now_us());
  });
}

void Store::add_attempt_plugins(int64_t attempt_id, std::span<const AttemptPlugin> plugins) {
  connection_->write([&](SQLite::Database& db) {
    for (const AttemptPlugin& plugin : plugins) {
      execute(db, "INSERT INTO attempt_plugins VALUES(?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
              attempt_id, plugin.plugin_id, plugin.role, plugin.git);
    }
  });
}

void Store::heartbeat(int64_t attempt_id, const AttemptProgress& progress) {
  connection_->write([&](SQLite::Database& db) {
    execute(db,
            "UPDATE attempts SET heartbeat_us=?2, last_phase=coalesce(?3, last_phase),"
            " last_step=coalesce(?4, last_step), last_bytes=coalesce(?5, last_bytes)"
            " WHERE attempt_id=?1",
            attempt_id, now_us(), progress.last_phase, progress.last_step, progress.last_bytes);
  });
}

void Store::finish_attempt(int64_t attempt_id, const AttemptEnd& end) {
  connection_->write([&](SQLite::Database& db) {
    const int64_t now = now_us();
    const int64_t changed = execute(
        db,
        "UPDATE attempts SET state=?2, ended_us=?3, exit_code=?4, signal=?5, reason=?6, detail=?7,"
        " stderr_tail=?8, log_path=coalesce(?9, log_path), log_bytes=?10, log_sha256=?11"
        " WHERE attempt_id=?1",
        attempt_id, end.state, now, end.exit_code, end.signal, end.reason, end.detail,
        end.stderr_tail, end.log_path, end.log_bytes, end.log_sha256);
    ASSAY_CHECK(changed == 1, "no attempt " + std::to_string(attempt_id) + " to finish");
    execute(db,
            "UPDATE runs SET state=?2, state_us=?3 WHERE run_id=(SELECT run_id FROM attempts"
            " WHERE attempt_id=?1) AND ?1=(SELECT max(attempt_id) FROM attempts a"
            " WHERE a.run_id=runs.run_id)",  // the newest attempt counts
            attempt_id, end.state, now);
  });
}

std::vector<OpenAttempt> Store::open_attempts(std::optional<int64_t> study_id) const {
  return connection_->read([&](SQLite::Database& db) {
    std::vector<OpenAttempt> result;
    auto row = statement(db,
                         "SELECT a.attempt_id, a.run_id, a.n, r.cell_id,"
                         " coalesce((SELECT slug FROM study_cells c WHERE c.cell_id=r.cell_id AND"
                         "  (?1 IS NULL OR c.study_id=?1) ORDER BY c.study_id DESC LIMIT 1), "
                         "substr(r.cell_id, 1, 12)),"
                         " a.pgid, a.pid, a.pid_start, a.log_path, s.supervisor_id, s.study_id, "
                         "s.env_id, s.argv_json,"
                         " s.boot_id, s.pid, s.pid_start, s.started_us, s.heartbeat_us"
                         " FROM attempts a JOIN runs r USING(run_id)"
                         " JOIN supervisors s ON s.supervisor_id=a.supervisor_id WHERE "
                         "a.state='running' AND (?1 IS NULL"
                         " OR r.cell_id IN (SELECT cell_id FROM study_cells WHERE study_id=?1)) "
                         "ORDER BY a.attempt_id",
                         study_id);
    while (row.executeStep()) {
      result.push_back({.attempt_id = row.getColumn(0).getInt64(),
                        .run_id = row.getColumn(1).getInt64(),
                        .n = row.getColumn(2).getInt64(),
                        .cell_id = row.getColumn(3).getString(),
                        .slug = row.getColumn(4).getString(),
                        .pgid = column_int(row, 5),
                        .pid = column_int(row, 6),
                        .pid_start = column_int(row, 7),
                        .log_path = column_text(row, 8),
                        .supervisor = {.supervisor_id = row.getColumn(9).getInt64(),
                                       .study_id = column_int(row, 10),
                                       .env_id = row.getColumn(11).getString(),
                                       .argv = nlohmann::json::parse(row.getColumn(12).getString()),
                                       .boot_id = row.getColumn(13).getString(),
                                       .pid = row.getColumn(14).getInt64(),
                                       .pid_start = row.getColumn(15).getInt64(),
                                       .started_us = row.getColumn(16).getInt64(),
                                       .heartbeat_us = row.getColumn(17).getInt64()}});
    }
    return result;
  });
}

void Store::put_metrics(int64_t attempt_id, std::span<const Metric> metrics) {
  connection_->write([&](SQLite::Database& db) {
    for (const Metric& metric : metrics) {
      if (!metric.value) continue;  // not measured: no row, never a zero
      const Figure figure = split(*metric.value);
      execute(db,
              "INSERT INTO metrics VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO UPDATE SET"
              " value=excluded.value, nonfinite=excluded.nonfinite, unit=excluded.unit,"
              " formula_id=excluded.formula_id",
              attempt_id, metric.name, metric.rank, figure.value, figure.nonfinite, metric.unit,
              metric.formula_id);
    }
  });
}

void Store::set_steady(int64_t attempt_id, Int first, Int last, const std::string& method) {
  connection_->write([&](SQLite::Database& db) {
    execute(db,
            "UPDATE attempts SET steady_first=?2, steady_last=?3, steady_method=?4"
            " WHERE attempt_id=?1",
            attempt_id, first, last, method);
  });
}

Table Store::query(const std::string& sql, std::initializer_list<Value> parameters) const {
  return store::query(*connection_, sql, {parameters.begin(), parameters.size()});
}

void Store::checkpoint() {
  connection_->read(
      [](SQLite::Database& db) { db.exec("PRAGMA optimize; PRAGMA wal_checkpoint(TRUNCATE)"); });
}

}  // namespace assay::store
