// Reading of `tune:`, and the study of its trials.
#include "core/grid/tuning.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "assay/error.h"
#include "core/base/nearest.h"
#include "core/grid/reading.h"
#include "core/grid/study.h"

namespace assay::grid {
namespace {

const std::vector<std::string> kKeys = {"key", "factors", "steps", "seeds", "score"};
constexpr double kMostFactor = 1e6;
constexpr double kMostSteps = 1e9;
constexpr size_t kClashDigits = 6;

class TuneReader {
 public:
  TuneReader(const Study& study, const Member& section, Findings& findings)
      : study_(study), section_(section), findings_(findings) {}

  std::optional<Tune> read() {
    const size_t errors = findings_.size();
    if (!section_.value.is_map()) {
      wrong(section_.mark,
            "'tune' must be a map {key: optim.lr, factors: [0.5, 1, 2], steps: 200}");
      return std::nullopt;
    }
    for (const Member& member : section_.value.members) known(member);
    read_key();
    numbers("factors", {.type = OptionType::real, .range = {0, kMostFactor}}, tune_.factors);
    numbers("seeds", *find_seed(), tune_.seeds);
    read_steps();
    read_score();
    if (tune_.factors.front() == 0) wrong(mark_of("factors"), "'tune.factors' must be above 0");
    check_seeds();
    return findings_.size() == errors ? std::optional(tune_) : std::nullopt;
  }

 private:
  const Node* find(const char* key) const { return section_.value.find(key); }
  Mark mark_of(const char* key) const {
    const Node* node = find(key);
    return node ? node->mark : section_.mark;
  }
  void wrong(const Mark& mark, const std::string& text) { findings_.error("G15", mark, text); }

  void known(const Member& member) {
    if (std::find(kKeys.begin(), kKeys.end(), member.key) != kKeys.end()) return;
    const std::string near = did_you_mean(nearest(member.key, kKeys));
    findings_.error("G04", member.mark, "unknown key '" + member.key + "' in tune",
                    {near.empty() ? "allowed: key, factors, steps, seeds, score" : near});
  }

  void read_key() {
    if (const Node* key = find("key")) {
      if (!key->is_scalar()) return wrong(key->mark, "'tune.key' must be one key, as optim.lr");
      tune_.key = key->text;
    }
    const auto& axes = study_.axis_names;
    const bool swept = std::find(axes.begin(), axes.end(), tune_.key) != axes.end();
    const bool derived = std::any_of(study_.derive.begin(), study_.derive.end(),
                                     [&](const Derived& d) { return d.key == tune_.key; });
    if (!swept && !derived) return read_before();
    findings_.error("G08", mark_of("key"),
                    "'" + tune_.key + "' is " + (swept ? "swept by the grid" : "derived") +
                        ": it cannot be tuned as well",
                    {"leave it out of the grid, or leave out tune"});
  }

  /// What is computed or decided from a value that tuning changes afterwards would not follow it.
  void read_before() {
    const auto reads = [&](const Condition& c, const std::string& key) {
      const auto& names = c.expression.names();
      return std::any_of(names.begin(), names.end(),
                         [&](const ExpressionName& name) { return name.text == key; });
    };
    const auto refuse = [&](const Mark& mark, const std::string& key, const std::string& what) {
      findings_.error("G08", mark, what + " '" + key + "', which tune changes afterwards",
                      {"set the value of each recipe, or leave out tune"});
    };
    for (const Derived& d : study_.derive) {
      for (const std::string& key : {tune_.key, std::string("train.steps"), std::string("seed")}) {
        if (reads(d.condition, key)) refuse(d.key_mark, key, "'" + d.key + "' is derived from");
      }
    }
    for (const Condition& c : study_.conditions) {
      if (reads(c, tune_.key)) refuse(c.mark, tune_.key, "a condition reads");
    }
    for (const Matcher& matcher : study_.exclude) {
      for (const Matcher::Term& term : matcher.terms) {
        if (term.key == tune_.key) refuse(term.mark, term.key, "'exclude' reads");
      }
    }
  }

  static const OptionSpec* find_seed() {
    static const OptionSpec spec{.type = OptionType::integer, .range = {0, 1e15}};
    return &spec;
  }

  /// A list of different numbers, ascending.
  template <class Number>
  void numbers(const char* key, OptionSpec spec, std::vector<Number>& list) {
    const Node* node = find(key);
    if (!node) return;
    if (!node->is_sequence() || node->items.empty()) {
      return wrong(node->mark, std::string("'tune.") + key + "' must be a list of numbers");
    }
    spec.name = key;
    std::set<Number> values;
    for (const Node& item : node->items) {
      const auto value = read_value(item, spec, std::string("tune.") + key, findings_);
      if (!value) return;
      if (!values.insert(std::get<Number>(*value)).second) {
        return wrong(item.mark, "'" + item.text + "' stands twice in tune." + key);
      }
    }
    list.assign(values.begin(), values.end());
  }

  void read_steps() {
    const Node* node = find("steps");
    if (!node) return wrong(section_.mark, "'tune.steps' is missing: the steps of every trial");
    const OptionSpec spec{.name = "steps", .type = OptionType::integer, .range = {1, kMostSteps}};
    const auto value = read_value(*node, spec, "tune.steps", findings_);
    if (value) tune_.steps = std::get<int64_t>(*value);
  }

  void read_score() {
    const Node* node = find("score");
    if (!node) return;
    const OptionSpec spec{
        .name = "score", .type = OptionType::choice, .choices = {"final_val_loss"}};
    read_value(*node, spec, "tune.score", findings_);
  }

  /// A seed that is compared must not have chosen the value.
  void check_seeds() {
    const auto& axes = study_.axis_names;
    if (!study_.seeds && std::find(axes.begin(), axes.end(), "seed") != axes.end()) {
      wrong(section_.mark, "'seed' is an axis of the grid: a study with tune lists seeds:");
    }
    if (!study_.seeds) return;
    for (const AxisPoint& point : study_.seeds->points) {
      for (const int64_t seed : tune_.seeds) {
        if (point.label != std::to_string(seed)) continue;
        wrong(mark_of("seeds"),
              "seed " + point.label + " is compared by the study: trials need seeds of their own");
      }
    }
  }

  const Study& study_;
  const Member& section_;
  Findings& findings_;
  Tune tune_{};
};

std::string spelled(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

std::string arm_of_twin(const Plan& plan, const std::string& slug) {
  const auto twin = std::find_if(plan.skips.begin(), plan.skips.end(), [&](const Skip& skip) {
    return skip.rule == "duplicate" && skip.slug == slug;
  });
  return twin == plan.skips.end() ? "" : twin->twin;
}

/// Collects the cells of all factors and seeds.
class TrialCollector {
 public:
  explicit TrialCollector(const Plan& study) : study_(study), key_(pointer_of(study.tune->key)) {
    for (const Cell& cell : study.cells) arms_.insert(cell.arm);
  }

  void take(Plan one, size_t factor, int64_t seed, Trials& trials) {
    std::map<std::string, std::pair<std::string, double>> cells;  // by arm: cell_id and value
    for (Cell& cell : one.cells) {
      const double value = cell.config().at(key_);
      cells[cell.arm] = {cell.cell_id, value};
      if (ids_.insert(cell.cell_id).second) add(std::move(cell), value, factor, seed, trials.plan);
    }
    for (const std::string& arm : arms_) {
      auto found = cells.find(arm);
      if (found == cells.end()) found = cells.find(arm_of_twin(one, arm));
      if (found == cells.end()) {
        throw Error("the recipe '" + arm + "' has no trial at " + study_.tune->key + " times " +
                        spelled(study_.tune->factors[factor]),
                    "its rules or conditions refuse that cell, see assay plan");
      }
      trials.cells.push_back({arm, found->second.first, factor, found->second.second, seed});
    }
  }

 private:
  static nlohmann::json::json_pointer pointer_of(const std::string& key) {
    std::string path = "/" + key;
    std::replace(path.begin(), path.end(), '.', '/');
    return nlohmann::json::json_pointer(path);
  }

  void add(Cell cell, double value, size_t factor, int64_t seed, Plan& plan) {
    const Tune& tune = *study_.tune;
    cell.ordinal = static_cast<int>(plan.cells.size());
    cell.slug = cell.arm + "_x" + spelled(tune.factors[factor]);
    if (tune.seeds.size() > 1) cell.slug += "_s" + std::to_string(seed);
    if (!slugs_.insert(cell.slug).second) cell.slug += "~" + cell.cell_id.substr(0, kClashDigits);
    const std::string number = nlohmann::json(value).dump();
    cell.axes.push_back({tune.key, number, number});
    plan.cells.push_back(std::move(cell));
  }

  const Plan& study_;
  const nlohmann::json::json_pointer key_;
  std::set<std::string> arms_, ids_, slugs_;
};

void require_names(const Plan& study) {
  std::map<std::string, std::string> recipes;
  for (const Cell& cell : study.cells) {
    const auto [known, fresh] = recipes.emplace(cell.arm, cell.recipe_id);
    if (fresh || known->second == cell.recipe_id) continue;
    throw Error("two recipes of the study are named '" + cell.arm + "': tune tells them by name",
                "give their blocks a label");
  }
}

}  // namespace

std::optional<Tune> read_tune(const Study& study, Findings& findings) {
  const Member* section = study.root.member("tune");
  if (!section) return std::nullopt;
  return TuneReader(study, *section, findings).read();
}

Trials plan_trials(const PlanRequest& request, const Plan& study) {
  require_names(study);
  Trials trials;
  trials.plan = study;
  trials.plan.study = study.study + "-tune";
  trials.plan.cells.clear();
  trials.plan.skips.clear();
  trials.plan.swept.push_back(study.tune->key);
  trials.plan.repeats = 0;  // its runs are trials
  TrialCollector collector(study);
  for (const int64_t seed : study.tune->seeds) {
    for (size_t factor = 0; factor < study.tune->factors.size(); ++factor) {
      PlanRequest one = request;
      one.trial = Trial{study.tune->factors[factor], study.tune->steps, seed};
      collector.take(plan(one), factor, seed, trials);
    }
  }
  return trials;
}

}  // namespace assay::grid
