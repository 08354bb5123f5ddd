// Store: the queue of runs. The supervisor writes every state, never the worker.
#include "assay/error.h"
#include "core/base/clock.h"
#include "core/store/connection.h"
#include "core/store/store.h"

namespace assay::store {
namespace {

// Slots first: a stopped study has every cell once before any cell twice.
constexpr const char* kQueued =
    "SELECT r.run_id, r.cell_id, s.slug, c.config_json, r.purpose, s.ordinal, r.slot,"
    " (SELECT count(*) FROM attempts a WHERE a.run_id=r.run_id), r.block"
    " FROM runs r JOIN study_cells s ON s.cell_id=r.cell_id AND s.study_id=?1"
    " JOIN cells c ON c.cell_id=r.cell_id"
    " WHERE r.machine_id=?2 AND r.state='queued' AND (?3 IS NULL OR r.run_id=?3)"
    " ORDER BY r.slot, s.ordinal, r.run_id";

QueuedRun queued_run(SQLite::Statement& row) {
  return {.run_id = row.getColumn(0).getInt64(),
          .cell_id = row.getColumn(1).getString(),
          .slug = row.getColumn(2).getString(),
          .config_json = row.getColumn(3).getString(),
          .purpose = row.getColumn(4).getString(),
          .ordinal = row.getColumn(5).getInt64(),
          .slot = row.getColumn(6).getInt64(),
          .attempts = row.getColumn(7).getInt64(),
          .block = row.getColumn(8).getInt64()};
}

constexpr const char* kMakeRun =
    "INSERT INTO runs(cell_id, machine_id, purpose, block, slot, state, state_us)"
    " VALUES(?1, ?2, ?3, ?4, ?5, 'queued', ?6) ON CONFLICT DO NOTHING";

int64_t new_attempt(SQLite::Database& db, int64_t run_id, const ClaimRequest& request,
                    int64_t now) {
  execute(
      db,
      "INSERT INTO attempts(run_id, n, supervisor_id, env_id, state, started_us, heartbeat_us,"
      " timed, resumed_step) SELECT ?1, coalesce(max(n), 0) + 1, ?2, ?3, 'running', ?4, ?4, ?5, ?6"
      " FROM attempts WHERE run_id=?1",
      run_id, request.supervisor_id, request.env_id, now, int64_t{request.timed},
      request.resumed_step);
  return db.getLastInsertRowid();
}

}  // namespace

int64_t Store::ensure_runs(int64_t study_id, const std::string& machine_id) {
  return connection_->write([&](SQLite::Database& db) {
    int64_t made = 0;
    auto cell = statement(db,
                          "SELECT cell_id, repeats FROM study_cells WHERE study_id=?1"
                          " ORDER BY ordinal",
                          study_id);
    while (cell.executeStep()) {
      const std::string cell_id = cell.getColumn(0).getString();
      for (int64_t slot = 0; slot < cell.getColumn(1).getInt64(); ++slot) {
        made += execute(db, kMakeRun, cell_id, machine_id, "measure", int64_t{0}, slot, now_us());
      }
    }
    return made;
  });
}

int64_t Store::ensure_run(const std::string& cell_id, const std::string& machine_id,
                          const std::string& purpose, int64_t block, int64_t slot) {
  return connection_->write([&](SQLite::Database& db) {
    execute(db, kMakeRun, cell_id, machine_id, purpose, block, slot, now_us());
    return *one(db,
                "SELECT run_id FROM runs WHERE cell_id=?1 AND machine_id=?2 AND purpose=?3"
                " AND block=?4 AND slot=?5",
                cell_id, machine_id, purpose, block, slot);
  });
}

std::vector<QueuedRun> Store::queued(int64_t study_id, const std::string& machine_id) const {
  return connection_->read([&](SQLite::Database& db) {
    std::vector<QueuedRun> result;
    auto row = statement(db, kQueued, study_id, machine_id, Int{});
    while (row.executeStep()) result.push_back(queued_run(row));
    return result;
  });
}

std::optional<Claim> Store::claim(const ClaimRequest& request) {
  return connection_->write([&](SQLite::Database& db) -> std::optional<Claim> {
    Claim claim;
    {
      auto row = statement(db, kQueued, request.study_id, request.machine_id, request.run_id);
      if (!row.executeStep()) return std::nullopt;
      claim.run = queued_run(row);
    }
    const int64_t now = now_us();
    const auto taken = one(db,
                           "UPDATE runs SET state='running', state_us=?2, supervisor_id=?3"
                           " WHERE run_id=?1 AND state='queued' RETURNING run_id",
                           claim.run.run_id, now, request.supervisor_id);
    ASSAY_CHECK(taken.has_value(), "a run left the queue inside an immediate transaction");
    claim.attempt_id = new_attempt(db, claim.run.run_id, request, now);
    claim.n = claim.run.attempts + 1;
    return claim;
  });
}

int64_t Store::requeue(int64_t study_id, const std::string& machine_id,
                       std::span<const std::string> states) {
  return connection_->write([&](SQLite::Database& db) {
    return execute(db,
                   "UPDATE runs SET state='queued', state_us=?4, supervisor_id=NULL"
                   " WHERE machine_id=?2 AND state IN (SELECT value FROM json_each(?3))"
                   " AND cell_id IN (SELECT cell_id FROM study_cells WHERE study_id=?1)",
                   study_id, machine_id,
                   nlohmann::json(std::vector<std::string>(states.begin(), states.end())).dump(),
                   now_us());
  });
}

void Store::requeue_run(int64_t run_id) {
  connection_->write([&](SQLite::Database& db) {
    execute(db, "UPDATE runs SET state='queued', state_us=?2, supervisor_id=NULL WHERE run_id=?1",
            run_id, now_us());
  });
}

}  // namespace assay::store
