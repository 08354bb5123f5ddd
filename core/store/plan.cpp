// Store: environments, plugins, studies with their cells, and supervisors.
#include "core/base/clock.h"
#include "core/store/connection.h"
#include "core/store/store.h"

namespace assay::store {
namespace {

int64_t study_row(SQLite::Database& db, const Study& study) {
  execute(
      db,
      "INSERT INTO studies(name, yaml_sha256, yaml_text, resolved_json, nuisance_json, created_us)"
      " VALUES(?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT(name, yaml_sha256) DO UPDATE SET"
      " resolved_json=excluded.resolved_json, nuisance_json=excluded.nuisance_json,"
      " created_us=excluded.created_us",  // planned again: the newest study of that name
      study.name, study.yaml_sha256, study.yaml_text, study.resolved_json, study.nuisance.dump(),
      now_us());
  return *one(db, "SELECT study_id FROM studies WHERE name=?1 AND yaml_sha256=?2", study.name,
              study.yaml_sha256);
}

void clear_plan(SQLite::Database& db, int64_t study_id) {
  for (const char* table : {"cell_axis", "study_cells", "plan_skips"}) {
    execute(db, ("DELETE FROM " + std::string(table) + " WHERE study_id=?1").c_str(), study_id);
  }
}

void add_cell(SQLite::Database& db, int64_t study_id, const Cell& cell) {
  execute(db,
          "INSERT INTO cells(cell_id, recipe_id, config_id, config_json, binaries_json,"
          " data_fingerprint) VALUES(?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
          cell.cell_id, cell.recipe_id, cell.config_id, cell.config_json, cell.binaries.dump(),
          cell.data_fingerprint);
  execute(db, "INSERT INTO study_cells VALUES(?1, ?2, ?3, ?4, ?5)", study_id, cell.cell_id,
          cell.ordinal, cell.slug, cell.repeats);
  for (const Axis& axis : cell.axes) {
    execute(db, "INSERT INTO cell_axis VALUES(?1, ?2, ?3, ?4, ?5)", study_id, cell.cell_id,
            axis.key, axis.label, axis.value.dump());
  }
}

void add_skip(SQLite::Database& db, int64_t study_id, int64_t seq, const Skip& skip) {
  execute(db, "INSERT INTO plan_skips VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)", study_id, seq, skip.slug,
          skip.line, skip.reason, skip.rule, skip.rule_id);
}

}  // namespace

void Store::add_env(const Env& env) {
  connection_->write([&](SQLite::Database& db) {
    execute(
        db,
        "INSERT INTO env VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"
        " ON CONFLICT DO NOTHING",
        env.env_id, env.machine_id, env.host, env.cpu_model, env.cpu_count, env.ram_bytes,
        env.device_model, env.device_count, env.driver, env.clock_policy, env.libtorch,
        env.compiler, env.build_type, env.sanitizer, env.facts.dump());
  });
}

int64_t Store::add_plugin(const Plugin& plugin) {
  return connection_->write([&](SQLite::Database& db) {
    execute(db,
            "INSERT INTO plugins(name, kind, version, abi, path, sha256, build_type)"
            " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
            plugin.name, plugin.kind, plugin.version, plugin.abi, plugin.path, plugin.sha256,
            plugin.build_type);
    return *one(db, "SELECT plugin_id FROM plugins WHERE sha256=?1 AND path=?2", plugin.sha256,
                plugin.path);
  });
}

int64_t Store::add_study(const Study& study) {
  return connection_->write([&](SQLite::Database& db) {
    const int64_t study_id = study_row(db, study);
    clear_plan(db, study_id);
    for (const Cell& cell : study.cells) add_cell(db, study_id, cell);
    int64_t seq = 0;
    for (const Skip& skip : study.skips) add_skip(db, study_id, seq++, skip);
    return study_id;
  });
}

int64_t Store::start_supervisor(const Supervisor& supervisor) {
  return connection_->write([&](SQLite::Database& db) {
    const int64_t now = now_us();
    execute(db,
            "INSERT INTO supervisors(study_id, env_id, argv_json, boot_id, pid, pid_start,"
            " started_us, heartbeat_us) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)",
            supervisor.study_id, supervisor.env_id, nlohmann::json(supervisor.argv).dump(),
            supervisor.boot_id, supervisor.pid, supervisor.pid_start, now);
    return db.getLastInsertRowid();
  });
}

void Store::heartbeat_supervisor(int64_t supervisor_id) {
  connection_->write([&](SQLite::Database& db) {
    execute(db, "UPDATE supervisors SET heartbeat_us=?2 WHERE supervisor_id=?1", supervisor_id,
            now_us());
  });
}

void Store::end_supervisor(int64_t supervisor_id, const std::string& reason) {
  connection_->write([&](SQLite::Database& db) {
    execute(db,
            "UPDATE supervisors SET ended_us=?2, heartbeat_us=?2, end_reason=?3"
            " WHERE supervisor_id=?1",
            supervisor_id, now_us(), reason);
  });
}

std::vector<Supervisor> Store::open_supervisors(std::optional<int64_t> study_id) const {
  return connection_->read([&](SQLite::Database& db) {
    std::vector<Supervisor> result;
    auto row =
        statement(db,
                  "SELECT supervisor_id, study_id, env_id, argv_json, boot_id, pid, pid_start,"
                  " started_us, heartbeat_us FROM supervisors WHERE ended_us IS NULL"
                  " AND (?1 IS NULL OR study_id=?1) ORDER BY supervisor_id",
                  study_id);
    while (row.executeStep()) {
      result.push_back({.supervisor_id = row.getColumn(0).getInt64(),
                        .study_id = column_int(row, 1),
                        .env_id = row.getColumn(2).getString(),
                        .argv = nlohmann::json::parse(row.getColumn(3).getString()),
                        .boot_id = row.getColumn(4).getString(),
                        .pid = row.getColumn(5).getInt64(),
                        .pid_start = row.getColumn(6).getInt64(),
                        .started_us = row.getColumn(7).getInt64(),
                        .heartbeat_us = row.getColumn(8).getInt64()});
    }
    return result;
  });
}

}  // namespace assay::store
