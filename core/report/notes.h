// Words of a report: the sentence of measured ranges, footnotes, environment.
#pragma once

#include "core/report/load.h"
#include "core/report/model.h"

namespace assay::report {

/// "Measured: throughput from ... to ...": ranges, never a judgement.
std::string range_sentence(const Model& model);
/// What differs, excluded steps, retries, statistics and formulas, binaries, run ids.
std::vector<std::string> make_footnotes(const store::Reader& reader, int64_t study_id,
                                        const Model& model, const std::vector<CellRow>& cells);
/// Machine, software and the command that made the runs.
std::vector<KeyValue> load_environment(const store::Reader& reader, int64_t study_id);
/// The machines in one line.
std::string machine_line(const store::Reader& reader, int64_t study_id);

}  // namespace assay::report
