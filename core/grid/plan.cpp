// Planning: a study read, expanded, resolved, checked and named.
#include "core/grid/plan.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "assay/error.h"
#include "core/base/nearest.h"
#include "core/grid/candidates.h"
#include "core/grid/check.h"
#include "core/grid/identity.h"
#include "core/grid/labels.h"
#include "core/grid/places.h"
#include "core/grid/reading.h"
#include "core/grid/tuning.h"

namespace assay::grid {
namespace {

constexpr size_t kClashDigits = 6;

std::string with_separators(int64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<size_t>(at), 1, ',');
  }
  return text;
}

std::string cells_word(int64_t count) {
  return std::to_string(count) + (count == 1 ? " cell" : " cells");
}

nlohmann::json section_json(const Study& study, std::string_view key) {
  const Node* node = study.root.find(key);
  return node ? nlohmann::json::parse(to_json_text(*node)) : nlohmann::json();
}

/// The place of a path below a section.
Mark mark_of(const Member& section, const SectionError& error) {
  const Node* node = &section.value;
  Mark mark = error.at_key ? section.mark : node->mark;
  for (const std::string& step : error.path) {
    if (node->is_sequence()) {
      node = &node->items.at(std::stoul(step));
      mark = node->mark;
    } else if (const Member* member = node->member(step)) {
      node = &member->value;
      mark = error.at_key ? member->mark : node->mark;
      if (error.at_key) mark.length = code_points(step);
    }
  }
  return mark;
}

RunKeys read_run_keys(const Study& study, int devices, Findings& findings) {
  RunKeys run;
  run.devices = devices;
  for (const auto& [name, node] : study.run) {
    const auto value = read_value(*node, *find_key(run_keys(), name), "run." + name, findings);
    if (!value) continue;
    if (name == "timed") {
      run.timed = std::get<bool>(*value);
      continue;
    }
    const int64_t number = std::get<int64_t>(*value);
    if (name == "timeout") run.timeout_ns = number;
    if (name == "step_timeout") run.step_timeout_ns = number;
    if (name == "retries") run.retries = static_cast<int>(std::min<int64_t>(number, INT_MAX));
    if (name == "devices") run.devices = static_cast<int>(std::min<int64_t>(number, INT_MAX));
    if (name == "memory_limit") run.memory_limit_bytes = number;
  }
  return run;
}

/// The study as one document: what extends, the environment and the command line made of it.
std::string resolved_json(const Study& study) {
  nlohmann::json json = nlohmann::json::parse(to_json_text(study.root));
  for (const Setting& s : study.command_line) {
    json["base"][s.key] = nlohmann::json::parse(to_json_text(*s.value));
  }
  for (const auto& [name, node] : study.run) {
    json["run"][name] = nlohmann::json::parse(to_json_text(*node));
  }
  return json.dump();
}

/// Refusals of many cells with one reason at one place are one message.
class Grouped {
 public:
  void add(Diagnostic diagnostic) {
    const std::string key = diagnostic.place + "\n" + diagnostic.id + "\n" + diagnostic.text;
    const auto [found, fresh] = index_.emplace(key, list_.size());
    if (fresh) list_.push_back({std::move(diagnostic), 0});
    ++list_[found->second].second;
  }
  std::vector<Diagnostic> take() {
    std::vector<Diagnostic> diagnostics;
    for (auto& [diagnostic, count] : list_) {
      if (count > 1) diagnostic.text += " (" + cells_word(count) + ")";
      diagnostics.push_back(std::move(diagnostic));
    }
    return diagnostics;
  }

 private:
  std::map<std::string, size_t> index_;
  std::vector<std::pair<Diagnostic, int64_t>> list_;
};

class Planner {
 public:
  explicit Planner(const PlanRequest& request)
      : request_(request),
        study_(read_study(request, findings_)),
        readable_(findings_.empty()),
        components_(request.components(study_->plugin_folders)),
        keys_(components_),
        binding_(bind(*study_, keys_, components_, findings_)),
        rules_(keys_, findings_),
        layouts_(keys_, values_, rules_, request.binaries, binding_.nuisance),
        shared_{components_,    keys_, values_, layouts_, findings_, request.machine.devices,
                study_->start()},
        facts_(components_, keys_),
        writer_(request.hash_file) {}

  Plan plan() {
    fill_head();
    read_filter();
    if (readable_) readable_ = check_size();
    if (!readable_) CellState(shared_, *study_).check_base();
    if (!readable_) findings_.throw_if_any();
    CandidateBuilder builder(*study_, binding_, shared_, tuning());
    builder.build(plan_.counts);
    findings_.throw_if_any();
    fetch_facts(builder);
    findings_.throw_if_any();
    judge(builder);
    findings_.throw_if_any();
    name_cells();
    finish(builder);
    return std::move(plan_);
  }

 private:
  void fill_head() {
    plan_.study = study_->name;
    plan_.file = study_->file;
    plan_.yaml_text = study_->yaml_text;
    plan_.resolved_json = resolved_json(*study_);
    plan_.nuisance = study_->nuisance;
    plan_.swept = study_->axis_names;
    plan_.repeats = study_->repeats;
    plan_.run = read_run_keys(*study_, request_.machine.devices, findings_);
    plan_.compare = section_json(*study_, "compare");
    plan_.gate = section_json(*study_, "gate");
    plan_.report = section_json(*study_, "report");
    plan_.tune = read_tune(*study_, findings_);
    plan_.places = Places::of(*study_).document();
    plan_.diagnostics = binding_.warnings;
    check_gate();
  }

  /// Of a trial, or of cells that were tuned.
  std::optional<CellTuning> tuning() {
    if (!plan_.tune) return std::nullopt;
    const Member& section = *study_->root.member("tune");
    const Node* named = section.value.find("key");
    const Mark mark = named ? named->mark : section.mark;
    const auto key = keys_.find(plan_.tune->key);
    if (!key) {
      std::vector<std::string> names;
      for (size_t i = 0; i < keys_.size(); ++i) names.push_back(keys_[i].name);
      const std::string near = did_you_mean(nearest(plan_.tune->key, names));
      findings_.error("G04", mark, "unknown option '" + plan_.tune->key + "'",
                      near.empty() ? std::vector<std::string>{} : std::vector{near});
      return std::nullopt;
    }
    return CellTuning{.key = *key,
                      .steps = *keys_.find("train.steps"),
                      .seed = *keys_.find("seed"),
                      .mark = mark,
                      .seeds = plan_.tune->seeds,
                      .trial = request_.trial,
                      .tuned = request_.tuned};
  }

  void check_gate() {
    const Member* gate = study_->root.member("gate");
    if (!gate || !request_.check_gate) return;
    for (const SectionError& error : request_.check_gate(plan_.gate)) {
      findings_.error(error.id, mark_of(*gate, error), error.text, error.hints);
    }
  }

  void read_filter() {
    if (request_.filter.empty()) return;
    try {
      filter_ = Condition{Expression::compile(request_.filter), {}};
      filter_names_ = bind_condition(*filter_, *study_, keys_, {}, findings_);
    } catch (const ExpressionError& error) {
      findings_.error(error.id, {}, std::string("--filter: ") + error.what());
    }
  }

  Mark grid_mark() const {
    const Member* grid = study_->root.member("grid");
    return grid ? grid->mark : study_->start();
  }

  /// Whether the grid can be expanded.
  bool check_size() {
    const size_t errors = findings_.size();
    int64_t cells = count_points(study_->grid, findings_);
    const auto seeds = study_->seeds ? static_cast<int64_t>(study_->seeds->points.size()) : 1;
    if (__builtin_mul_overflow(cells, seeds, &cells)) cells = INT64_MAX;
    if (cells <= request_.max_cells) return findings_.size() == errors;
    findings_.error("G12", grid_mark(),
                    "the grid has " + with_separators(cells) + " cells, the limit is " +
                        with_separators(request_.max_cells) + " (--max-cells)");
    return false;
  }

  /// Where a key got its value: the first of `keys` that the study sets.
  Mark place_of(CandidateBuilder& builder, const Candidate& candidate,
                const std::vector<size_t>& keys) {
    const CellState& state = builder.revisit(candidate);
    const Setting* best = nullptr;
    for (const size_t key : keys) {
      const Setting* setting = state.setting(key);
      if (setting && (!best || setting->layer > best->layer)) best = setting;
    }
    return best ? best->value->mark : grid_mark();
  }

  std::vector<size_t> section_keys(const Layout& layout, Kind kind) const {
    std::vector<size_t> paths, others;
    for (const Entry& entry : layout.entries) {
      if (!entry.component || entry.component->kind != kind) continue;
      const bool path = entry.spec && entry.spec->type == OptionType::path;
      (path ? paths : others).push_back(entry.key);
    }
    paths.insert(paths.end(), others.begin(), others.end());
    return paths;
  }

  void fetch_facts(CandidateBuilder& builder) {
    std::vector<std::pair<const Layout*, const Values*>> cells;
    for (const Candidate& c : builder.candidates()) cells.emplace_back(c.layout, &c.values);
    facts_.prepare(cells);
    std::unordered_set<const Facts*> seen;
    for (const Candidate& c : builder.candidates()) {
      Facts& data = facts_.data(*c.layout, c.values);
      if (!seen.insert(&data).second || !data.error) continue;
      const std::vector<size_t> keys = section_keys(*c.layout, Kind::data);
      findings_.error("G20", place_of(builder, c, keys), *data.error,
                      data.hint.empty() ? std::vector<std::string>{} : std::vector{data.hint});
    }
  }

  void judge(CandidateBuilder& builder) {
    const Checker checker(keys_, request_.machine, plan_.run.devices, findings_);
    for (Candidate& candidate : builder.candidates()) {
      Facts& data = facts_.data(*candidate.layout, candidate.values);
      const CellView view{*candidate.layout, candidate.values, data,
                          facts_.model(*candidate.layout, candidate.values)};
      if (auto refusal = checker.check(view)) {
        refuse(builder, candidate, *refusal);
      } else if (filtered(builder, candidate)) {
        ++plan_.counts.filtered;
        builder.skips().push_back({candidate.order,
                                   {.slug = slug_of(candidate.picks, study_->name),
                                    .rule = "filter",
                                    .reason = "--filter \"" + request_.filter + "\" is false",
                                    .place = "command line"}});
      } else {
        add_cell(builder, candidate, data, checker.world(*candidate.layout, candidate.values));
        note_idle(builder, candidate, checker.idle(view));
      }
    }
    for (Diagnostic& d : refusals_.take()) plan_.diagnostics.push_back(std::move(d));
    for (Diagnostic& d : idle_notes()) plan_.diagnostics.push_back(std::move(d));
  }

  void refuse(CandidateBuilder& builder, const Candidate& candidate, const Refusal& refusal) {
    ++plan_.counts.refused;
    const Mark mark = place_of(builder, candidate, refusal.keys);
    refusals_.add(
        make_diagnostic(Severity::refused, refusal.id, mark, refusal.text, refusal.hints));
    builder.skips().push_back({candidate.order,
                               {.slug = slug_of(candidate.picks, study_->name),
                                .line = mark.line > 0 ? std::optional(mark.line) : std::nullopt,
                                .rule = "refused",
                                .rule_id = refusal.id,
                                .reason = refusal.text,
                                .place = mark.place()}});
  }

  bool filtered(CandidateBuilder& builder, const Candidate& candidate) {
    if (!filter_) return false;
    return !builder.revisit(candidate).holds(*filter_, filter_names_);
  }

  void add_cell(CandidateBuilder& builder, const Candidate& candidate, Facts& data, int world) {
    const Layout& layout = *candidate.layout;
    Cell cell;
    cell.slug = slug_of(candidate.picks, study_->name);
    std::vector<Pick> recipe = candidate.picks;
    if (candidate.seed) recipe.pop_back();
    cell.arm = slug_of(recipe, study_->name);
    cell.binaries_json = layout.binaries_json;
    cell.data_fingerprint = data.json.value("fingerprint", "");
    const Ids ids = ids_of(layout.binaries_json, writer_.hashed(layout, candidate.values),
                           writer_.recipe(layout, candidate.values), cell.data_fingerprint);
    cell.cell_id = ids.cell_id;
    cell.recipe_id = ids.recipe_id;
    cell.config_id = ids.config_id;
    cell.config_json = candidate.config;
    cell.plugin_files = layout.plugin_files;
    cell.world = world;
    for (const Pick& pick : candidate.picks) {
      cell.axes.push_back({pick.axis->name, pick.point->label, pick.point->value_json});
    }
    if (request_.origins) cell.origins = origins(builder, candidate);
    plan_.cells.push_back(std::move(cell));
  }

  std::vector<Origin> origins(CandidateBuilder& builder, const Candidate& candidate) {
    const CellState& state = builder.revisit(candidate);
    std::vector<Origin> list;
    for (size_t i = 0; i < candidate.values.size(); ++i) {
      const Entry& entry = candidate.layout->entries[i];
      const Setting* setting = state.setting(entry.key);
      std::string place = entry.computed == Computed::none ? "default" : "computed";
      if (setting) place = setting->value->mark.place();
      if (state.is_derived(entry.key)) place = "derived";
      list.push_back({keys_[entry.key].name, candidate.values[i]->json, place});
    }
    return list;
  }

  struct Idle {
    Mark mark;
    int64_t cells = 0;
  };

  void note_idle(CandidateBuilder& builder, const Candidate& candidate,
                 const std::vector<std::pair<const Component*, std::string>>& idle) {
    for (const auto& [component, dim] : idle) {
      Idle& entry = idle_[{component->id(), dim}];
      if (entry.cells++ == 0) {
        entry.mark = place_of(builder, candidate, {*keys_.find("parallel." + dim + ".name")});
      }
      plan_.cells.back().notes.push_back(component->id() + " has degree 1: not used");
    }
  }

  std::vector<Diagnostic> idle_notes() const {
    std::vector<Diagnostic> notes;
    for (const auto& [which, idle] : idle_) {
      const auto& [component, dim] = which;
      const std::string degree = dim == "dp_shard" ? "mesh.dp_shard * mesh.cp" : "mesh." + dim;
      notes.push_back(make_diagnostic(Severity::note, "G19", idle.mark,
                                      component + " has degree 1 in " + cells_word(idle.cells) +
                                          " (" + degree + "): not used there"));
    }
    return notes;
  }

  void name_cells() {
    std::map<std::string, int> slugs;
    for (const Cell& cell : plan_.cells) ++slugs[cell.slug];
    int ordinal = 0;
    for (Cell& cell : plan_.cells) {
      cell.ordinal = ordinal++;
      if (slugs[cell.slug] > 1) cell.slug += "~" + cell.cell_id.substr(0, kClashDigits);
    }
  }

  void finish(CandidateBuilder& builder) {
    auto& skips = builder.skips();
    std::stable_sort(skips.begin(), skips.end(),
                     [](const OrderedSkip& a, const OrderedSkip& b) { return a.order < b.order; });
    for (OrderedSkip& s : skips) plan_.skips.push_back(std::move(s.skip));
    if (!plan_.cells.empty()) return;
    const PlanCounts& counts = plan_.counts;
    std::string text = "no cell is left: " + std::to_string(counts.expanded) + " expanded";
    const auto add = [&](int64_t count, const char* word) {
      if (count > 0) text += ", " + std::to_string(count) + " " + word;
    };
    add(counts.included, "included");
    add(counts.excluded, "excluded");
    add(counts.by_when, "by when");
    add(counts.duplicates, "duplicates");
    add(counts.refused, "refused");
    add(counts.filtered, "by --filter");
    if (counts.refused > 0) text += "; reasons above";
    std::vector<Diagnostic> all = plan_.diagnostics;
    all.push_back(make_diagnostic(Severity::error, "G18", grid_mark(), text));
    throw DiagnosticError(std::move(all));
  }

  const PlanRequest& request_;
  Findings findings_;
  std::unique_ptr<Study> study_;
  bool readable_;  ///< the grid has a form that can be expanded
  const Components& components_;
  Keys keys_;
  Binding binding_;
  TypedValues values_;
  RuleBook rules_;
  Layouts layouts_;
  Shared shared_;
  FactsBook facts_;
  ConfigWriter writer_;
  std::optional<Condition> filter_;
  NameRefs filter_names_;
  Grouped refusals_;
  std::map<std::pair<std::string, std::string>, Idle> idle_;  ///< by component and dimension
  Plan plan_;
};

}  // namespace

Plan plan(const PlanRequest& request) { return Planner(request).plan(); }

}  // namespace assay::grid
