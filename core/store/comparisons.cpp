// Writing of comparisons. Every function is one transaction.
#include "core/store/comparisons.h"

#include "core/base/clock.h"
#include "core/store/connection.h"
#include "core/store/schema.h"
#include "core/store/store.h"

namespace assay::store {
namespace {

void upsert_baseline(SQLite::Database& db, const Baseline& b) {
  execute(db,
          "INSERT INTO baselines VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO UPDATE SET"
          " value=excluded.value, run_id=excluded.run_id, set_us=excluded.set_us",
          b.machine_id, b.gate, b.config_id, b.metric, b.anchor, b.value, b.run_id, now_us());
}

void insert_verdict(SQLite::Database& db, int64_t comparison_id, const VerdictRow& v) {
  execute(db,
          "INSERT INTO verdicts(comparison_id, metric, stage, verdict, reason, n_used, n_discarded,"
          " estimate, ci_lo, ci_hi, ci_level, p_greater, p_less, p_same, p_adjusted, min_effect,"
          " same_margin, mde, sd, sd_robust, control_verdict, method_id, labels_json, computed_us,"
          " code_version) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,"
          " ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25)",
          comparison_id, v.metric, v.stage, v.verdict, v.reason, v.n_used, v.n_discarded,
          v.estimate, v.ci_lo, v.ci_hi, v.ci_level, v.p_greater, v.p_less, v.p_same, v.p_adjusted,
          v.min_effect, v.same_margin, v.mde, v.sd, v.sd_robust, v.control_verdict, v.method_id,
          v.labels.dump(), now_us(), created_by());
}

}  // namespace

int64_t put_comparison(Store& store, const ComparisonRow& row) {
  return store.connection().write([&](SQLite::Database& db) {
    const auto known = one(db,
                           "SELECT comparison_id FROM comparisons WHERE study_id=?1 AND"
                           " base_cell=?2 AND cand_cell=?3 ORDER BY comparison_id LIMIT 1",
                           row.study_id, row.base_cell, row.cand_cell);
    if (known) {
      execute(db,
              "UPDATE comparisons SET label=?2, design_json=?3, loss_tier=?4"
              " WHERE comparison_id=?1",
              *known, row.label, row.design.dump(), row.loss_tier);
      return *known;
    }
    execute(db,
            "INSERT INTO comparisons(study_id, label, base_cell, cand_cell, design_json,"
            " loss_tier, created_us) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            row.study_id, row.label, row.base_cell, row.cand_cell, row.design.dump(), row.loss_tier,
            now_us());
    return db.getLastInsertRowid();
  });
}

void plan_pairs(Store& store, int64_t comparison_id, const std::string& statistic,
                std::span<const PlannedPair> pairs) {
  store.connection().write([&](SQLite::Database& db) {
    for (const PlannedPair& p : pairs) {
      execute(db,
              "INSERT INTO pairs(comparison_id, stage, idx, orientation, statistic, run_a, run_b,"
              " quality_json) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, '{}') ON CONFLICT DO NOTHING",
              comparison_id, p.stage, p.idx, p.baseline_first ? "AB" : "BA", statistic, p.run_a,
              p.run_b);
    }
  });
}

void put_pair_results(Store& store, int64_t comparison_id, std::span<const PairResult> results) {
  store.connection().write([&](SQLite::Database& db) {
    for (const PairResult& r : results) {
      execute(db,
              "UPDATE pairs SET value_a=?4, value_b=?5, d=?6, change_pct=?7, discarded=?8,"
              " discard_reason=?9, quality_json=?10 WHERE comparison_id=?1 AND stage=?2 AND idx=?3",
              comparison_id, r.stage, r.idx, r.value_a, r.value_b, r.d, r.change_pct,
              int64_t{r.discard_reason.has_value()}, r.discard_reason, r.quality.dump());
    }
  });
}

void put_verdicts(Store& store, int64_t comparison_id, std::span<const VerdictRow> verdicts,
                  std::span<const LintRow> findings) {
  store.connection().write([&](SQLite::Database& db) {
    execute(db, "DELETE FROM verdicts WHERE comparison_id=?1", comparison_id);
    execute(db, "DELETE FROM lint WHERE comparison_id=?1", comparison_id);
    for (const VerdictRow& v : verdicts) insert_verdict(db, comparison_id, v);
    for (const LintRow& f : findings) {
      execute(db, "INSERT INTO lint VALUES(?1, ?2, ?3, ?4, ?5)", comparison_id, f.rule, f.value_a,
              f.value_b, f.overridden_by);
    }
  });
}

void put_trials(Store& store, int64_t study_id, std::span<const TrialRow> trials) {
  store.connection().write([&](SQLite::Database& db) {
    execute(db, "DELETE FROM trials WHERE study_id=?1", study_id);
    for (const TrialRow& t : trials) {
      execute(db,
              "INSERT INTO trials(study_id, arm, idx, run_id, value_json, score, chosen)"
              " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
              study_id, t.arm, t.idx, t.run_id, t.value.dump(), t.score, int64_t{t.chosen});
    }
  });
}

void put_baseline(Store& store, const Baseline& baseline) {
  store.connection().write([&](SQLite::Database& db) { upsert_baseline(db, baseline); });
}

void accept(Store& store, const Acceptance& a, const Baseline& baseline) {
  store.connection().write([&](SQLite::Database& db) {
    execute(db,
            "INSERT INTO acceptances(machine_id, gate, config_id, metric, old_value, new_value,"
            " commit_sha, author, reason, made_us) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            a.machine_id, a.gate, a.config_id, a.metric, a.old_value, a.new_value, a.commit_sha,
            a.author, a.reason, now_us());
    upsert_baseline(db, baseline);
  });
}

}  // namespace assay::store
