// LintPlaces: where in the YAML of a stored study the reason of a linter's finding stands.
#pragma once

#include "core/base/diagnostic.h"
#include "core/evidence/verdict.h"
#include "core/grid/places.h"
#include "core/host/comparisons.h"
#include "core/store/reader.h"

namespace assay::cli {

class LintPlaces {
 public:
  LintPlaces(const store::Reader& reader, const store::StudyInfo& study);

  /// Place and excerpt alone: what sets a key of the finding in the candidate's cell, else in the
  /// baseline's, else the candidate's arm, else "study: candidate against baseline".
  Diagnostic of(const evidence::LintFinding& finding, const host::ComparisonPlan& comparison) const;

 private:
  /// By layer, the one that wins first.
  std::optional<Diagnostic> setting(const std::string& key,
                                    const host::ComparisonPlan& comparison) const;
  /// The point of the first axis on which the candidate stands elsewhere than the baseline.
  std::optional<Diagnostic> point(const host::ComparisonPlan& comparison) const;

  const store::Reader& reader_;
  const store::StudyInfo study_;
  const grid::Places places_;
};

}  // namespace assay::cli
