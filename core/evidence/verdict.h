// Verdict: what evidence says about one metric of one comparison, as reports and the gate read it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace assay::evidence {

/// Time: faster, slower, same. Bytes, counts and losses of unlike recipes: better, worse, same.
/// Loss parity: parity, no_parity, not_shown. Without an answer: unresolved; invalid if the block
/// of pairs failed its own control.
enum class Call {
  faster,
  slower,
  better,
  worse,
  same,
  unresolved,
  parity,
  no_parity,
  not_shown,
  invalid
};

/// "FASTER", "NO_PARITY", ...: as tables and the database have it.
const char* name_of(Call call);
Call call_of(const std::string& name);  ///< throws std::logic_error for another word

/// The same numbers to the bit, the same mathematics in another order, other numerics.
enum class Tier { none, t0, t1, t2 };
const char* name_of(Tier tier);  ///< "none", "T0", ...
Tier tier_of(const std::string& name);

struct Interval {
  double low = 0, high = 0;
  double level = 0;  ///< achieved, two-sided: 0.995
};

/// One metric. Estimates of kind `log_ratio` are ln(candidate / baseline), > 0: the candidate has
/// more (of a time: is slower); `difference` is candidate - baseline in `unit`.
struct Verdict {
  enum class Scale { log_ratio, difference };

  std::string metric{};  ///< "step_time", "peak_allocated_bytes", "final_val_loss", ...
  int stage = 1;         ///< 0: A/A control, 2: confirmation by the gate
  Call call = Call::unresolved;
  std::string reason{};  ///< one phrase: "below_minimum", "too_few", "noisy", ...
  Scale scale = Scale::log_ratio;
  std::string unit{};  ///< of a difference: "nat", "bytes"
  int64_t n_used = 0;  ///< pairs, or seeds
  int64_t n_discarded = 0;
  std::optional<double> estimate{};
  std::optional<Interval> interval{};
  std::optional<double> p_greater{}, p_less{}, p_same{}, p_adjusted{};
  std::optional<double> min_effect{}, same_margin{};  ///< shares, or in `unit`
  std::optional<double> mde{};  ///< smallest effect found with 80 % power, on the scale of estimate
  std::optional<double> sd{}, sd_robust{};
  std::string control{};              ///< name of the control's call, empty without one
  std::string method_id{};            ///< "pair.sr.v1", "exact.v1", "seed.tost.v1", "bits.v1", ...
  std::vector<std::string> labels{};  ///< "below_mde", "order", "no_control", lint labels
  std::optional<int64_t> more{};      ///< further pairs or seeds that would settle it, if any would

  /// exp(x) - 1 of a log ratio: a share, 0.03 = 3 % more.
  std::optional<double> change() const;
  std::optional<Interval> change_interval() const;
};

/// Baseline run A and candidate run B, back to back.
struct Pair {
  int stage = 1;  ///< 0: both runs are the baseline's
  int64_t index = 0;
  bool baseline_first = true;  ///< orientation AB
  int64_t run_a = 0, run_b = 0;
  std::optional<double> value_a{}, value_b{};         ///< run statistic, s
  std::optional<double> median_a{}, median_b{};       ///< always shown beside it, s
  std::string discard_reason{};                       ///< empty: used
  nlohmann::json quality = nlohmann::json::object();  ///< what the filter saw

  bool used() const { return discard_reason.empty() && value_a && value_b; }
  double log_ratio() const;  ///< ln(B / A) of a used pair
};

/// A rule of the fair-comparison linter that two arms break.
struct LintFinding {
  std::string rule{};  ///< "L05"
  std::string what{};  ///< "total tokens"
  std::string base{}, candidate{};
  std::string hint{};
  std::vector<std::string> keys{};  ///< configuration keys that it speaks of, if any
  std::string allowed{};            ///< reason of the override; empty: the comparison is refused
};

/// How the compared recipes may differ in their losses, and why.
struct TierChoice {
  Tier tier = Tier::t2;
  std::vector<std::string> evidence{};  ///< "precision.name: bf16 -> float8 affects numerics"
};

/// Everything known about baseline against one candidate.
struct Comparison {
  int64_t comparison_id = 0, study_id = 0;
  std::string label{};     ///< the candidate's
  std::string baseline{};  ///< the baseline's label
  std::string base_cell{}, cand_cell{};
  nlohmann::json design = nlohmann::json::object();  ///< rule, thresholds, seeds; stored as it is
  TierChoice tier{};
  std::vector<Pair> pairs{};        ///< in order of (stage, index)
  std::vector<Verdict> verdicts{};  ///< control first, then time, memory, bytes, loss
  std::vector<LintFinding> lint{};
  bool comparable() const;                                  ///< no finding that was not allowed
  const Verdict* verdict(const std::string& metric) const;  ///< the newest stage; null if none
};

nlohmann::json to_json(const Verdict& verdict);

}  // namespace assay::evidence
