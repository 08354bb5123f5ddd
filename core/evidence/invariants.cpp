// Each invariant is one query that finds its first violation.
#include "core/evidence/invariants.h"

namespace assay::evidence {
namespace {

using store::integer;
using store::real;
using store::Store;
using store::Table;
using store::text;

std::string number(const Table& table, const char* column, size_t row = 0) {
  const auto value = integer(table.at(row, column));
  return value ? std::to_string(*value) : "none";
}

void check_spools(const Store& store, const Attempt& attempt, std::vector<Violation>& found) {
  for (int64_t rank = 0; rank < attempt.world_size(); ++rank) {
    const store::SpoolPosition spool = store.spool(attempt.attempt_id, rank);
    if (spool.complete()) continue;
    const std::string declared = spool.rows_declared
                                     ? std::to_string(*spool.rows_declared) + " rows declared"
                                     : std::string("not closed");
    found.push_back({"spool", "the spool of rank " + std::to_string(rank) + " is " + declared +
                                  ", " + std::to_string(spool.rows_imported) + " imported"});
  }
}

void check_steps(const Store& store, const Attempt& attempt, std::vector<Violation>& found) {
  const Table table = store.query(
      "SELECT rank, count(*) n FROM steps WHERE attempt_id=?1 AND kind "
      "IN('warmup','steady','profiler')"
      " GROUP BY rank HAVING n<>?2 ORDER BY rank",
      {attempt.attempt_id, attempt.planned_steps()});
  if (!table.empty()) {
    found.push_back({"steps", "rank " + number(table, "rank") + " recorded " + number(table, "n") +
                                  " train steps of " + std::to_string(attempt.planned_steps())});
  } else if (attempt.steps.empty()) {
    found.push_back({"steps", "no train step was recorded"});
  }
}

void check_tokens(const Store& store, const Attempt& attempt, std::vector<Violation>& found) {
  const Table table = store.query(
      "SELECT step, rank, tokens FROM steps WHERE attempt_id=?1 AND kind "
      "IN('warmup','steady','profiler')"
      " AND tokens<>?2 ORDER BY step, rank LIMIT 1",
      {attempt.attempt_id, attempt.tokens_per_step()});
  if (table.empty()) return;
  found.push_back({"tokens", "step " + number(table, "step") + " of rank " + number(table, "rank") +
                                 " counted " + number(table, "tokens") +
                                 " tokens; global_batch x "
                                 "seq_len is " +
                                 std::to_string(attempt.tokens_per_step())});
}

void check_finite(const Store& store, const Attempt& attempt, std::vector<Violation>& found) {
  const Table table = store.query(
      "SELECT step, rank, CASE WHEN loss IS NOT NULL THEN 'gradient norm' WHEN kind='eval' THEN"
      " 'evaluation loss' ELSE 'loss' END what FROM steps WHERE attempt_id=?1 AND"
      " kind IN('warmup','steady','eval','profiler') AND (flags & 16) ORDER BY step, rank LIMIT 1",
      {attempt.attempt_id});
  if (table.empty()) return;
  found.push_back({"loss.finite", "the " + *text(table.at(0, "what")) + " is not finite at step " +
                                      number(table, "step") + " (rank " + number(table, "rank") +
                                      ")"});
}

void check_ranks_agree(const Store& store, const Attempt& attempt, std::vector<Violation>& found) {
  for (const std::string column : {"loss_bits", "grad_norm_bits"}) {
    const Table table = store.query(
        "SELECT step FROM steps WHERE attempt_id=?1 AND kind<>'checkpoint' GROUP BY step,"
        " kind HAVING min(coalesce(" +
            column + ", 0))<>max(coalesce(" + column +
            ", 0))"
            " ORDER BY step LIMIT 1",
        {attempt.attempt_id});
    if (table.empty()) continue;
    const char* what = column == "loss_bits" ? "loss" : "gradient norm";
    found.push_back({"loss.ranks", std::string("ranks disagree on the ") + what + " of step " +
                                       number(table, "step") +
                                       ": it is a global value and must be equal in bits"});
  }
}

void check_mfu(const Store& store, const Attempt& attempt, std::vector<Violation>& found) {
  const Table table = store.query(
      "SELECT value FROM metrics WHERE attempt_id=?1 AND name='mfu' AND rank=-1"
      " AND NOT (value>0 AND value<=1)",
      {attempt.attempt_id});
  if (table.empty()) return;
  found.push_back({"mfu", "model FLOPs utilisation is " +
                              std::to_string(*real(table.at(0, "value"))) +
                              ", outside (0, 1]: the FLOP count or the peak is wrong"});
}

}  // namespace

std::vector<Violation> broken_invariants(const Store& store, const Attempt& attempt) {
  std::vector<Violation> found;
  for (const auto check :
       {check_spools, check_steps, check_tokens, check_finite, check_ranks_agree, check_mfu}) {
    check(store, attempt, found);
  }
  return found;
}

}  // namespace assay::evidence
