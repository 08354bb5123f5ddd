// Choosing arms from a stored study, and laying out their pairs.
#include "core/host/comparisons.h"

#include <algorithm>
#include <map>
#include <set>

#include "assay/error.h"
#include "core/base/nearest.h"
#include "core/evidence/bits.h"
#include "core/store/comparisons.h"

namespace assay::host {
namespace {

using evidence::Arm;
using evidence::Design;
using nlohmann::json;
using store::integer;
using store::Table;
using store::text;
using store::Value;

constexpr const char* kArm = "arm";
constexpr const char* kSeed = "seed";

/// Labels of a cell's axes without the seed.
std::map<std::string, std::string> axis_labels(const store::Reader& reader, int64_t study_id,
                                               const std::string& cell_id) {
  const Table rows =
      reader.query("SELECT key, label FROM cell_axis WHERE study_id=?1 AND cell_id=?2",
                   {Value(study_id), Value(cell_id)});
  std::map<std::string, std::string> labels;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    labels[*text(rows.at(i, "key"))] = *text(rows.at(i, "label"));
  }
  labels.erase(kSeed);
  return labels;
}

std::string point_of(std::map<std::string, std::string> labels) {
  labels.erase(kArm);
  std::string point;
  for (const auto& [key, label] : labels) point += (point.empty() ? "" : " ") + label;
  return point;
}

const Arm& arm_named(const std::vector<Arm>& arms, const std::string& label) {
  std::vector<std::string> labels;
  for (const Arm& arm : arms) {
    if (arm.label == label) return arm;
    labels.push_back(arm.label);
  }
  std::string known;
  for (const std::string& l : labels) known += (known.empty() ? "" : ", ") + l;
  const std::string near = did_you_mean(nearest(label, labels));
  throw Error("the study has no recipe '" + label + "'",
              near.empty() ? "there are: " + known : near);
}

/// The tier that the differences ask for, unless the study declares one.
void choose_tier(Design& design, const Arm& base, const Arm& candidate,
                 const evidence::Traits& traits, const std::string& declared) {
  const json a = json::parse(base.config_json), b = json::parse(candidate.config_json);
  design.tier = evidence::choose_tier(a, b, traits);
  design.winner = evidence::quality_may_differ(a, b);
  if (declared.empty()) return;
  const evidence::Tier tier = evidence::tier_of(declared);
  if (tier != design.tier.tier) {
    design.tier.evidence.insert(design.tier.evidence.begin(),
                                "declared " + declared + "; the differences ask for " +
                                    evidence::name_of(design.tier.tier));
  }
  design.tier.tier = tier;
}

ComparisonPlan plan_of(const Arm& base, const Arm& candidate, Design design,
                       const evidence::Traits& traits, const std::string& declared) {
  choose_tier(design, base, candidate, traits, declared);
  if (design.baseline.empty()) design.baseline = base.label;
  if (design.candidate.empty()) design.candidate = candidate.label;
  return {.base = base, .candidate = candidate, .design = std::move(design)};
}

/// Arms of `compare:` by grid point: label of the arm -> recipe.
std::map<std::string, std::map<std::string, const Arm*>> arms_by_point(
    const store::Reader& reader, int64_t study_id, const std::vector<Arm>& arms) {
  std::map<std::string, std::map<std::string, const Arm*>> points;
  for (const Arm& arm : arms) {
    const auto labels = axis_labels(reader, study_id, arm.seeds.front().cell_id);
    const auto found = labels.find(kArm);
    if (found != labels.end()) points[point_of(labels)][found->second] = &arm;
  }
  return points;
}

std::string label_of(const json& arm, const std::string& standard) {
  return arm.is_object() ? arm.value("label", standard) : standard;
}

/// Lays out the missing pairs of a block in the order in which they run: run ids ascend with it.
class Scheduler {
 public:
  Scheduler(store::Store& store, const std::string& machine_id,
            const std::vector<ComparisonPlan>& comparisons, const std::vector<int64_t>& ids,
            int stage)
      : store_(store),
        machine_id_(machine_id),
        comparisons_(comparisons),
        ids_(ids),
        stage_(stage) {
    const store::Reader reader(store.file());
    for (size_t i = 0; i < ids.size(); ++i) {
      // Pairs of stage 2 have numbers behind those of stage 1: no slot of a cell is shared.
      const int64_t before = stage == 2 ? planned(reader, ids[i], 1) : 0;
      next_.push_back(std::max(planned(reader, ids[i], stage), before));
      end_.push_back(before + comparisons[i].design.pairs);
      rounds_ = std::max(rounds_, end_[i] - next_[i]);
      next_control_ = std::max(next_control_, planned(reader, ids[i], 0));
    }
    controls_ = comparisons.front().design.control_pairs;
  }

  void schedule() {
    int64_t made = 0;
    for (int64_t round = 0; round < rounds_; ++round) {
      const int64_t due = (controls_ * (round + 1) + rounds_ - 1) / rounds_;
      for (; made < due; ++made) add_control(next_control_ + made);
      for (size_t i = 0; i < ids_.size(); ++i) {
        if (next_[i] + round < end_[i]) add(i, stage_, next_[i] + round);
      }
    }
  }

 private:
  static int64_t planned(const store::Reader& reader, int64_t comparison_id, int64_t stage) {
    const Table row = reader.query(
        "SELECT coalesce(max(idx) + 1, 0) FROM pairs WHERE comparison_id=?1 AND stage=?2",
        {Value(comparison_id), Value(stage)});
    return *integer(row.rows.at(0).at(0));
  }

  /// A B, B A, A B, ...; odd seeds start with B A, and stage 2 turns everything round.
  bool starts_with_baseline(const ComparisonPlan& c, int64_t idx) const {
    const bool turned = (c.base.seeds.front().seed % 2 != 0) != (stage_ == 2);
    return (idx % 2 == 0) != turned;
  }

  store::PlannedPair made_pair(size_t i, int64_t stage, int64_t idx) {
    const ComparisonPlan& c = comparisons_[i];
    const std::string& base = c.base.seeds.front().cell_id;
    const std::string& other = stage == 0 ? base : c.candidate.seeds.front().cell_id;
    const char* purpose = stage == 0 ? "control" : "pair";
    store::PlannedPair pair{
        .stage = stage, .idx = idx, .baseline_first = starts_with_baseline(c, idx)};
    const auto make_a = [&] {
      pair.run_a = store_.ensure_run(base, machine_id_, purpose, ids_[i], 2 * idx);
    };
    const auto make_b = [&] {
      pair.run_b = store_.ensure_run(other, machine_id_, purpose, ids_[i], 2 * idx + 1);
    };
    if (pair.baseline_first) make_a();
    make_b();
    if (!pair.baseline_first) make_a();
    return pair;
  }

  void add(size_t i, int64_t stage, int64_t idx) {
    const store::PlannedPair pair = made_pair(i, stage, idx);
    store::plan_pairs(store_, ids_[i], comparisons_[i].design.statistic, {&pair, 1});
  }

  /// A control is of a baseline: it serves every comparison of the block that shares it.
  void add_control(int64_t idx) {
    const store::PlannedPair pair = made_pair(0, 0, idx);
    for (size_t i = 0; i < ids_.size(); ++i) {
      if (comparisons_[i].base.recipe_id != comparisons_.front().base.recipe_id) continue;
      store::plan_pairs(store_, ids_[i], comparisons_[i].design.statistic, {&pair, 1});
    }
  }

  store::Store& store_;
  const std::string& machine_id_;
  const std::vector<ComparisonPlan>& comparisons_;
  const std::vector<int64_t>& ids_;
  const int stage_;
  std::vector<int64_t> next_{}, end_{};  ///< numbers of pairs, by comparison
  int64_t rounds_ = 0, next_control_ = 0, controls_ = 0;
};

}  // namespace

evidence::Traits traits_of(const grid::Components& components) {
  return [&components](const std::string& position, const std::string& name,
                       const std::string& option) -> evidence::Trait {
    const auto kind = kind_of(position.substr(0, position.find('.')));
    const Component* component = kind ? components.find(*kind, name) : nullptr;
    if (!component) return {};
    evidence::Trait trait{.known = true};
    trait.bitwise_identical = std::find(component->provides.begin(), component->provides.end(),
                                        "bitwise.identical") != component->provides.end();
    const OptionSpec* spec = option.empty() ? nullptr : component->option(option);
    trait.numerics = !spec || spec->affects == Affects::numerics;
    return trait;
  };
}

std::vector<std::string> compared_keys(const store::Reader& reader, int64_t study_id) {
  const Table rows = reader.query(
      "SELECT DISTINCT key, value_json FROM cell_axis WHERE study_id=?1", {Value(study_id)});
  std::set<std::string> keys;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    const std::string key = *text(rows.at(i, "key"));
    const json value = json::parse(*text(rows.at(i, "value_json")));
    if (key == kSeed) continue;
    if (key.find('.') != std::string::npos || !value.is_object()) keys.insert(key);
    if (value.is_object()) {  // an axis of variants: what its points set
      for (const auto& [set, unused] : evidence::flat_config(value)) keys.insert(set);
    }
  }
  return {keys.begin(), keys.end()};
}

std::vector<ComparisonPlan> declared_comparisons(const store::Reader& reader, int64_t study_id,
                                                 const json& section,
                                                 const evidence::Traits& traits) {
  if (!section.is_object()) return {};
  Design design = evidence::design_of_section(section);
  design.axes = compared_keys(reader, study_id);
  const json loss = section.value("loss", json::object());
  const std::string declared = loss.is_object() ? loss.value("tier", "") : "";
  const json baseline = section.value("baseline", json());
  if (baseline.is_string()) {
    std::vector<std::string> names;
    for (const json& c : section.value("candidates", json::array())) names.push_back(c);
    auto list = chosen_comparisons(reader, study_id, baseline, names, design, traits);
    for (ComparisonPlan& c : list) choose_tier(c.design, c.base, c.candidate, traits, declared);
    return list;
  }
  const std::vector<Arm> arms = evidence::load_arms(reader, study_id);
  const auto points = arms_by_point(reader, study_id, arms);
  std::vector<ComparisonPlan> list;
  for (const auto& [point, by_label] : points) {
    const std::string base_label = label_of(baseline, "");
    const auto base = by_label.find(base_label);
    if (base == by_label.end()) continue;  // refused there
    for (const json& candidate : section.value("candidates", json::array())) {
      const auto found = by_label.find(label_of(candidate, ""));
      if (found == by_label.end()) continue;
      Design own = design;
      own.baseline = base_label;
      own.candidate = found->first + (point.empty() ? "" : " (" + point + ")");
      list.push_back(plan_of(*base->second, *found->second, std::move(own), traits, declared));
    }
  }
  return list;
}

std::vector<ComparisonPlan> chosen_comparisons(const store::Reader& reader, int64_t study_id,
                                               const std::string& baseline,
                                               const std::vector<std::string>& candidates,
                                               const Design& design,
                                               const evidence::Traits& traits) {
  const std::vector<Arm> arms = evidence::load_arms(reader, study_id);
  if (arms.empty()) throw Error("the study has no cell");
  const Arm& base = baseline.empty() ? arms.front() : arm_named(arms, baseline);
  std::vector<const Arm*> others;
  for (const std::string& name : candidates) {
    if (name == base.label) throw Error("'" + name + "' is the baseline: it is no candidate too");
    others.push_back(&arm_named(arms, name));
  }
  if (candidates.empty()) {
    for (const Arm& arm : arms) {
      if (&arm != &base) others.push_back(&arm);
    }
  }
  Design common = design;
  common.axes = compared_keys(reader, study_id);
  std::vector<ComparisonPlan> list;
  for (const Arm* other : others) list.push_back(plan_of(base, *other, common, traits, ""));
  return list;
}

namespace {

/// Tier T1 needs the baseline under perturbation. A step of one row has no other order.
void plan_envelope(store::Store& store, const std::string& machine_id, const ComparisonPlan& plan) {
  if (plan.design.tier.tier != evidence::Tier::t1) return;
  const json config = json::parse(plan.base.config_json);
  const auto train = config.value("train", json::object());
  if (train.value("global_batch", int64_t{0}) < 2) return;
  for (int64_t slot = 0; slot < evidence::kEnvelopeRuns; ++slot) {
    store.ensure_run(plan.base.seeds.front().cell_id, machine_id, "envelope", 0, slot);
  }
}

}  // namespace

std::vector<int64_t> schedule_pairs(store::Store& store, int64_t study_id,
                                    const std::string& machine_id,
                                    const std::vector<ComparisonPlan>& comparisons, int stage) {
  std::vector<int64_t> ids;
  for (const ComparisonPlan& c : comparisons) {
    ids.push_back(store::put_comparison(store, {.study_id = study_id,
                                                .label = c.design.candidate,
                                                .base_cell = c.base.seeds.front().cell_id,
                                                .cand_cell = c.candidate.seeds.front().cell_id,
                                                .design = to_json(c.design),
                                                .loss_tier = name_of(c.design.tier.tier)}));
  }
  for (const ComparisonPlan& c : comparisons) plan_envelope(store, machine_id, c);
  if (!comparisons.empty()) Scheduler(store, machine_id, comparisons, ids, stage).schedule();
  return ids;
}

std::vector<PairRuns> pair_runs(const store::Reader& reader, int64_t study_id,
                                const std::string& machine_id) {
  const Table rows = reader.query(
      "WITH p AS (SELECT DISTINCT run_a, run_b FROM pairs JOIN comparisons USING(comparison_id)"
      " WHERE study_id=?1) SELECT r.run_id, r.cell_id, r.slot, r.state, r.purpose, r.block,"
      " s.ordinal, s.slug, c.config_json, c.binaries_json, (SELECT count(*) FROM attempts a WHERE"
      " a.run_id=r.run_id) AS attempts FROM p JOIN runs r ON r.run_id IN (p.run_a, p.run_b)"
      " JOIN study_cells s ON s.cell_id=r.cell_id AND s.study_id=?1 JOIN cells c ON"
      " c.cell_id=r.cell_id WHERE r.machine_id=?2 ORDER BY min(p.run_a, p.run_b), r.run_id",
      {Value(study_id), Value(machine_id)});
  std::vector<PairRuns> pairs;
  for (size_t i = 0; i + 1 < rows.rows.size(); i += 2) {
    pairs.push_back({study_run_at(rows, i), study_run_at(rows, i + 1)});
  }
  return pairs;
}

}  // namespace assay::host
