// Rows of comparisons: pairs, verdicts, lint findings, baselines of the gate. evidence makes them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/store/rows.h"

namespace assay::store {

class Store;

struct ComparisonRow {
  int64_t study_id = 0;
  std::string label{};
  std::string base_cell{}, cand_cell{};
  nlohmann::json design = nlohmann::json::object();
  std::string loss_tier = "none";  ///< none, T0, T1, T2
};

/// A pair whose runs exist; the run that starts first has the smaller run_id.
struct PlannedPair {
  int64_t stage = 1;  ///< 0: A/A control
  int64_t idx = 0;
  bool baseline_first = true;
  int64_t run_a = 0, run_b = 0;
};

/// What came of a pair.
struct PairResult {
  int64_t stage = 1, idx = 0;
  Real value_a{}, value_b{}, d{}, change_pct{};
  Text discard_reason{};
  nlohmann::json quality = nlohmann::json::object();
};

struct VerdictRow {
  std::string metric{};
  int64_t stage = 1;
  std::string verdict{}, reason{};
  int64_t n_used = 0, n_discarded = 0;
  Real estimate{}, ci_lo{}, ci_hi{}, ci_level{}, p_greater{}, p_less{}, p_same{}, p_adjusted{};
  Real min_effect{}, same_margin{}, mde{}, sd{}, sd_robust{};
  Text control_verdict{};
  std::string method_id{};
  nlohmann::json labels = nlohmann::json::array();
};

struct LintRow {
  std::string rule{};
  std::string value_a{}, value_b{};
  Text overridden_by{};
};

/// A run that tried a value for a recipe.
struct TrialRow {
  std::string arm{};
  int64_t idx = 0;  ///< of the value
  int64_t run_id = 0;
  nlohmann::json value = nlohmann::json::object();
  Real score{};  ///< NULL: none, the worst
  bool chosen = false;
};

/// An accepted value of a deterministic figure.
struct Baseline {
  std::string machine_id{}, gate{}, config_id{}, metric{};
  std::string anchor = "rolling";  ///< rolling, release
  double value = 0;
  Int run_id{};
};

struct Acceptance {
  std::string machine_id{}, gate{}, config_id{}, metric{};
  Real old_value{}, new_value{};
  std::string commit_sha{}, author{}, reason{};
};

/// The id of the study's comparison of these two cells; its label, design and tier are brought up
/// to date.
int64_t put_comparison(Store& store, const ComparisonRow& row);
/// Pairs that exist already (stage, idx) are kept.
void plan_pairs(Store& store, int64_t comparison_id, const std::string& statistic,
                std::span<const PlannedPair> pairs);
void put_pair_results(Store& store, int64_t comparison_id, std::span<const PairResult> results);
/// Replaces all verdicts and findings of the comparison.
void put_verdicts(Store& store, int64_t comparison_id, std::span<const VerdictRow> verdicts,
                  std::span<const LintRow> findings);
/// Replaces all trials of the study.
void put_trials(Store& store, int64_t study_id, std::span<const TrialRow> trials);
/// Replaces the value under (machine, gate, config, metric, anchor).
void put_baseline(Store& store, const Baseline& baseline);
/// The record and the new value of its anchor, in one transaction.
void accept(Store& store, const Acceptance& acceptance, const Baseline& baseline);

}  // namespace assay::store
