// Queries for the parts of a peak and of the traffic, of the newest attempt of every run.
#include <map>

#include "core/report/load.h"

namespace assay::report {
namespace {

using store::integer;
using store::Reader;
using store::real;
using store::Table;
using store::text;

using ByAttempt = std::map<int64_t, RunRow*>;

/// Calls f(run, row) for every row whose attempt is the newest of its run.
template <class F>
void each(const Table& rows, const ByAttempt& runs, F&& f) {
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    const auto found = runs.find(*integer(rows.at(i, "attempt_id")));
    if (found != runs.end()) f(*found->second, i);
  }
}

/// The rank and the phase with the highest peak of an attempt tell how it splits.
void load_memory(const Reader& reader, int64_t study_id, const ByAttempt& runs) {
  const Table parts = reader.query(
      "SELECT c.attempt_id, c.category, c.bytes FROM study_cells s JOIN runs r USING(cell_id)"
      " JOIN attempts a USING(run_id) JOIN memory m USING(attempt_id) JOIN memory_categories c ON"
      " c.attempt_id=m.attempt_id AND c.rank=m.rank AND c.phase=m.phase WHERE s.study_id=?1"
      " AND (m.rank, m.phase)=(SELECT x.rank, x.phase FROM memory x WHERE x.attempt_id=m.attempt_id"
      "  ORDER BY x.peak_allocated_bytes DESC, x.rank, x.phase LIMIT 1)"
      " ORDER BY c.attempt_id, c.category",
      {study_id});
  each(parts, runs, [&](RunRow& run, size_t i) {
    run.memory.emplace_back(*text(parts.at(i, "category")), *integer(parts.at(i, "bytes")));
  });
  const Table limits = reader.query(
      "SELECT m.attempt_id, max(m.limit_bytes) bytes FROM study_cells s JOIN runs r USING(cell_id)"
      " JOIN attempts a USING(run_id) JOIN memory m USING(attempt_id) WHERE s.study_id=?1"
      " GROUP BY m.attempt_id",
      {study_id});
  each(limits, runs,
       [&](RunRow& run, size_t i) { run.limit_bytes = integer(limits.at(i, "bytes")); });
}

/// Per step, of the rank that sends most, as the figure wire_bytes has it.
void load_traffic(const Reader& reader, int64_t study_id, const ByAttempt& runs) {
  const Table rows = reader.query(
      "WITH g AS (SELECT c.attempt_id, c.rank, c.grp, sum(1.0*c.wire_bytes/c.steps) bytes"
      "  FROM study_cells s JOIN runs r USING(cell_id) JOIN attempts a USING(run_id)"
      "  JOIN collectives c USING(attempt_id) WHERE s.study_id=?1 AND c.steps>0"
      "  AND c.phase NOT IN('control','eval','init','checkpoint')"
      "  GROUP BY c.attempt_id, c.rank, c.grp),"
      " t AS (SELECT attempt_id, rank, row_number() OVER (PARTITION BY attempt_id"
      "  ORDER BY sum(bytes) DESC, rank) place FROM g GROUP BY attempt_id, rank)"
      " SELECT g.attempt_id, g.grp, g.bytes FROM g JOIN t USING(attempt_id, rank) WHERE t.place=1"
      " ORDER BY g.attempt_id, g.grp",
      {study_id});
  each(rows, runs, [&](RunRow& run, size_t i) {
    run.traffic.push_back({*text(rows.at(i, "grp")), real(rows.at(i, "bytes")).value_or(0)});
  });
}

}  // namespace

void load_parts(const Reader& reader, int64_t study_id, std::vector<RunRow>& runs) {
  ByAttempt by_attempt;
  for (RunRow& run : runs) {
    if (run.attempt_id) by_attempt[*run.attempt_id] = &run;
  }
  load_memory(reader, study_id, by_attempt);
  load_traffic(reader, study_id, by_attempt);
}

}  // namespace assay::report
