// Candidates: the resolved cells of a study before rules are asked, duplicates merged.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/grid/binding.h"
#include "core/grid/cell_state.h"
#include "core/grid/facts.h"
#include "core/grid/plan.h"

namespace assay::grid {

struct Candidate {
  size_t order = 0;  ///< place among all cells and skips
  const Draft* draft = nullptr;
  const Setting* seed = nullptr;
  const Layout* layout = nullptr;
  Values values{};
  std::string config{};
  std::vector<Pick> picks{};
};

/// A skip and where it belongs among the cells.
struct OrderedSkip {
  size_t order = 0;
  Skip skip{};
};

/// The layer over all others, in a study with `tune:`.
struct CellTuning {
  size_t key = 0, steps = 0, seed = 0;  ///< ids of keys
  Mark mark{};
  std::vector<int64_t> seeds{};  ///< of the trials
  std::optional<Trial> trial{};
  std::map<std::string, double> tuned{};  ///< by Cell::arm
};

class CandidateBuilder {
 public:
  CandidateBuilder(const Study& study, const Binding& binding, const Shared& shared,
                   std::optional<CellTuning> tuning);

  /// Expands, derives, excludes, filters by `when`, multiplies by seeds and merges duplicates.
  void build(PlanCounts& counts);

  std::vector<Candidate>& candidates() { return candidates_; }
  std::vector<OrderedSkip>& skips() { return skips_; }

  /// Brings the state back to a candidate, to ask where its values come from.
  CellState& revisit(const Candidate& candidate);

 private:
  void add(const Draft& draft, PlanCounts& counts);
  bool derive();
  bool matches(const BoundMatcher& matcher);
  bool term_matches(const BoundTerm& term);
  const Typed* matched_value(const Node& node, size_t key);
  const Condition* false_condition(const Draft& draft);
  void add_seeds(const Draft& draft, PlanCounts& counts);
  void add_candidate(const Draft& draft, const Setting* seed, PlanCounts& counts);
  bool tune();
  bool check_declared();
  void undeclared(const Setting& setting);
  void skip(const std::string& rule, const Mark& mark, const std::string& reason);

  const Study& study_;
  const Binding& binding_;
  const Shared& shared_;
  const std::optional<CellTuning> tuning_;
  CellState state_;
  std::vector<Draft> drafts_;
  std::vector<Candidate> candidates_;
  std::vector<OrderedSkip> skips_;
  std::unordered_map<std::string, std::string> slugs_;  ///< of the first cell, by configuration
  std::map<std::pair<const Node*, const OptionSpec*>, const Typed*> matched_;
  bool derive_reads_seed_ = false;
  size_t order_ = 0;
};

}  // namespace assay::grid
