// assess: from recorded runs to the verdicts of a comparison. Pure functions of the database.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/evidence/design.h"
#include "core/evidence/verdict.h"
#include "core/store/reader.h"
#include "core/store/store.h"

namespace assay::evidence {

/// One recipe in a study: its cells differ in nuisance keys (seeds).
struct Arm {
  struct Seed {
    int64_t seed = 0;
    std::string cell_id{};
  };
  std::string label{};
  std::string recipe_id{};
  std::string config_json{};  ///< of the first cell
  std::vector<Seed> seeds{};  ///< in grid order; the first is the one that is timed
};

/// A recipe's name: the slug of its cell; of several seeds what their slugs share, without the "-s"
/// or "_seed" that led to the difference. `slugs` is not empty.
std::string shared_label(const std::vector<std::string>& slugs);

/// Recipes of a study, in grid order.
std::vector<Arm> load_arms(const store::Reader& reader, int64_t study_id);

/// Everything that the database says about two arms, whether pairs were planned for them or not.
Comparison assess(const store::Reader& reader, int64_t study_id, const Arm& base,
                  const Arm& candidate, const Design& design);

/// Holm over every one-sided p of the list (`p_adjusted`); a winner whose adjusted p is no longer
/// below its alpha becomes UNRESOLVED(holm) or NOT_SHOWN(holm).
void adjust(std::vector<Comparison>& comparisons);

/// The declared comparisons of a study (rows of `comparisons`), each assessed, adjusted together.
std::vector<Comparison> assess_study(const store::Reader& reader, int64_t study_id);

/// Writes pairs, verdicts and lint findings of an assessed comparison that has an id.
void store_verdicts(store::Store& store, const Comparison& comparison);

}  // namespace assay::evidence
