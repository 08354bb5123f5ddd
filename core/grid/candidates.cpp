// From grid points to resolved cells.
#include "core/grid/candidates.h"

#include <algorithm>

#include "core/grid/identity.h"
#include "core/grid/labels.h"
#include "core/grid/reading.h"

namespace assay::grid {

CandidateBuilder::CandidateBuilder(const Study& study, const Binding& binding, const Shared& shared,
                                   std::optional<CellTuning> tuning)
    : study_(study),
      binding_(binding),
      shared_(shared),
      tuning_(std::move(tuning)),
      state_(shared, study) {
  for (const Derived& derived : study_.derive) {
    for (const ExpressionName& name : derived.condition.expression.names()) {
      derive_reads_seed_ = derive_reads_seed_ || name.text == "seed";
    }
  }
}

void CandidateBuilder::build(PlanCounts& counts) {
  drafts_ = expand(study_.grid);
  counts.expanded = static_cast<int64_t>(drafts_.size());
  counts.included = static_cast<int64_t>(study_.include.size());
  counts.seeds = study_.seeds ? static_cast<int64_t>(study_.seeds->points.size()) : 1;
  for (const std::vector<Axis>& row : study_.include) {
    Draft draft;
    for (const Axis& axis : row) draft.picks.push_back({&axis, &axis.points[0]});
    drafts_.push_back(std::move(draft));
  }
  candidates_.reserve(drafts_.size() * static_cast<size_t>(counts.seeds));
  for (const Draft& draft : drafts_) add(draft, counts);
}

void CandidateBuilder::add(const Draft& draft, PlanCounts& counts) {
  ++order_;
  if (!state_.start(draft, binding_.names) || !state_.layout() || !derive()) return;
  for (const BoundMatcher& matcher : binding_.exclude) {
    if (!matches(matcher)) continue;
    ++counts.excluded;
    return skip("exclude", matcher.matcher->mark, "exclude at " + matcher.matcher->mark.place());
  }
  if (const Condition* condition = false_condition(draft)) {
    ++counts.by_when;
    return skip("when", condition->mark,
                "when at " + condition->mark.place() + ": " + condition->expression.text());
  }
  add_seeds(draft, counts);
}

bool CandidateBuilder::derive() {
  const size_t errors = shared_.findings.size();
  for (size_t i = 0; i < study_.derive.size(); ++i) {
    const Derived& derived = study_.derive[i];
    const size_t key = binding_.derive[i];
    if (key == kUnknownKey) continue;
    const Value value = state_.evaluate(derived.condition, binding_.names.at(&derived.condition));
    if (shared_.findings.size() != errors) return false;
    const Typed* typed = state_.convert(value, key, derived.condition.mark);
    if (!typed) return false;
    state_.derive(key, typed);
  }
  return state_.layout() != nullptr;
}

bool CandidateBuilder::matches(const BoundMatcher& matcher) {
  if (const Condition* condition = matcher.matcher->condition) {
    return state_.holds(*condition, binding_.names.at(condition));
  }
  return std::all_of(matcher.terms.begin(), matcher.terms.end(),
                     [this](const BoundTerm& term) { return term_matches(term); });
}

bool CandidateBuilder::term_matches(const BoundTerm& term) {
  const auto& wanted = term.term->values;
  if (!term.key) {
    return std::any_of(state_.picks().begin(), state_.picks().end(), [&](const Pick& pick) {
      return pick.axis->id == term.axis &&
             std::any_of(wanted.begin(), wanted.end(),
                         [&](const Node* node) { return node->text == pick.point->label; });
    });
  }
  if (*term.key == kUnknownKey) return false;
  const Typed* actual = state_.typed(*term.key);
  return actual && std::any_of(wanted.begin(), wanted.end(), [&](const Node* node) {
           const Typed* value = matched_value(*node, *term.key);
           return value && equal(value->value, actual->value);
         });
}

/// A matcher's value read by the option's type in this cell.
const Typed* CandidateBuilder::matched_value(const Node& node, size_t key) {
  const Entry& entry = state_.layout()->entries[state_.layout()->entry(key)];
  const auto [found, fresh] = matched_.emplace(std::pair(&node, entry.spec), nullptr);
  if (!fresh) return found->second;
  if (!entry.spec) {
    found->second = shared_.values.intern(node.text);
  } else if (const auto value =
                 read_value(node, *entry.spec, shared_.keys[key].name, shared_.findings)) {
    found->second = shared_.values.intern(*value);
  }
  return found->second;
}

const Condition* CandidateBuilder::false_condition(const Draft& draft) {
  for (const Block* block : draft.blocks) {
    if (block->when && !state_.holds(*block->when, binding_.names.at(block->when))) {
      return block->when;
    }
  }
  const Condition* when = study_.when;
  return when && !state_.holds(*when, binding_.names.at(when)) ? when : nullptr;
}

void CandidateBuilder::add_seeds(const Draft& draft, PlanCounts& counts) {
  if (!study_.seeds || (tuning_ && tuning_->trial)) return add_candidate(draft, nullptr, counts);
  for (const AxisPoint& point : study_.seeds->points) {
    const Setting& seed = point.settings.at(0);
    state_.apply(seed);
    if (derive_reads_seed_ && !derive()) return;
    add_candidate(draft, &seed, counts);
  }
}

/// A trial's value, steps and seed, or the value that was chosen.
bool CandidateBuilder::tune() {
  if (!tuning_) return true;
  const std::string arm = slug_of(state_.picks(), study_.name);
  const Typed* start = state_.typed(tuning_->key);
  const double* number = start ? std::get_if<double>(&start->option) : nullptr;
  if (!number) {
    const std::string& name = shared_.keys[tuning_->key].name;
    shared_.findings.error("G15", tuning_->mark,
                           "'" + name + "' cannot be tuned: " + arm + " has no such number");
    return false;
  }
  if (*number == 0) {
    shared_.findings.error("G15", tuning_->mark,
                           "'" + shared_.keys[tuning_->key].name + "' is 0 in " + arm +
                               ": every factor of it is 0 as well");
    return false;
  }
  if (const Typed* seed = study_.seeds ? nullptr : state_.typed(tuning_->seed)) {
    const int64_t own = std::get<int64_t>(seed->option);
    if (std::find(tuning_->seeds.begin(), tuning_->seeds.end(), own) != tuning_->seeds.end()) {
      shared_.findings.error("G15", tuning_->mark,
                             "seed " + std::to_string(own) + " is the study's own (" + arm +
                                 "): trials need seeds of their own");
      return false;
    }
  }
  const auto set = [&](size_t key, const Value& value) {
    const Typed* typed = state_.convert(value, key, tuning_->mark);  // within the option's range
    if (typed) state_.derive(key, typed);
    return typed != nullptr;
  };
  if (const auto& trial = tuning_->trial) {
    return set(tuning_->key, *number * trial->factor) && set(tuning_->steps, trial->steps) &&
           set(tuning_->seed, trial->seed);
  }
  const auto chosen = tuning_->tuned.find(arm);
  return chosen == tuning_->tuned.end() || set(tuning_->key, chosen->second);
}

void CandidateBuilder::add_candidate(const Draft& draft, const Setting* seed, PlanCounts& counts) {
  if (!tune() || !check_declared()) return;
  Candidate candidate{.order = ++order_, .draft = &draft, .seed = seed, .layout = state_.layout()};
  candidate.values.reserve(candidate.layout->entries.size());
  for (size_t i = 0; i < candidate.layout->entries.size(); ++i) {
    candidate.values.push_back(state_.entry(i));
    if (!candidate.values.back()) return;  // reported
  }
  candidate.picks = state_.picks();
  if (seed) {
    const auto& points = study_.seeds->points;
    const auto point = std::find_if(points.begin(), points.end(),
                                    [&](const AxisPoint& p) { return &p.settings.at(0) == seed; });
    candidate.picks.push_back({&*study_.seeds, &*point});
  }
  candidate.config = ConfigWriter::plain(*candidate.layout, candidate.values);
  const std::string slug = slug_of(candidate.picks, study_.name);
  const auto [first, fresh] = slugs_.emplace(candidate.config, slug);
  if (!fresh) {
    ++counts.duplicates;
    const Mark mark = candidate.picks.empty() ? study_.start() : candidate.picks[0].point->mark;
    skips_.push_back({candidate.order,
                      {.slug = slug,
                       .line = mark.line > 0 ? std::optional(mark.line) : std::nullopt,
                       .rule = "duplicate",
                       .reason = "the same cell as " + first->second,
                       .place = mark.place(),
                       .twin = first->second}});
    return;
  }
  candidates_.push_back(std::move(candidate));
}

bool CandidateBuilder::check_declared() {
  const size_t errors = shared_.findings.size();
  for (const size_t key : state_.set_keys()) {
    if (state_.layout()->entry(key) >= 0) continue;
    const Setting* setting = state_.setting(key);
    if (setting && setting->layer != Layer::defaults) undeclared(*setting);
  }
  return shared_.findings.size() == errors;
}

void CandidateBuilder::undeclared(const Setting& setting) {
  const KeyInfo& key = shared_.keys[setting.id];
  std::string declared, instead;
  for (const Component* component : key.declared_by) {
    declared += (declared.empty() ? "" : ", ") + component->id();
  }
  for (size_t i = 0; i < shared_.keys.slots().size(); ++i) {
    const Slot& slot = shared_.keys.slots()[i];
    if (!key.name.starts_with(slot.prefix + ".")) continue;
    const Component* chosen = state_.layout()->chosen[i];
    instead = chosen ? ", not by " + chosen->id() : "; this cell names no " + slot.prefix;
  }
  Mark mark = setting.key_mark;
  if (const size_t dot = key.name.rfind('.'); mark.line > 0) {
    mark.length = code_points(key.name.substr(dot + 1));
  }
  shared_.findings.error(
      "G04", mark, "unknown option '" + key.name + "'",
      {"declared by " + declared + instead + " (" + slug_of(state_.picks(), study_.name) +
       "); under 'defaults:' it is ignored where it does not apply"});
}

void CandidateBuilder::skip(const std::string& rule, const Mark& mark, const std::string& reason) {
  skips_.push_back({order_,
                    {.slug = state_.slug_of_picks(),
                     .line = mark.line > 0 ? std::optional(mark.line) : std::nullopt,
                     .rule = rule,
                     .reason = reason,
                     .place = mark.place()}});
}

CellState& CandidateBuilder::revisit(const Candidate& candidate) {
  state_.start(*candidate.draft, binding_.names);
  if (candidate.seed) state_.apply(*candidate.seed);
  derive();
  tune();
  return state_;
}

}  // namespace assay::grid
