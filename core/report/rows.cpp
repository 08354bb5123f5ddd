// Grouping runs to recipes.
#include "core/report/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/evidence/assess.h"
#include "core/report/matrix.h"
#include "core/store/quantile.h"

namespace assay::report {
namespace {

/// Worst first: the order in which a group of runs takes its state (v_cell).
constexpr const char* kStates[] = {"running", "queued", "infra", "invalid", "killed",
                                   "timeout", "fail",   "oom",   "ok"};

bool ended_badly(const std::string& state) {
  return state != "ok" && state != "queued" && state != "running";
}

std::string why(const RunRow& run) {
  if (!run.reason.empty()) return run.reason;
  if (run.signal) return fmt::format("ended by signal {}", *run.signal);
  if (run.exit_code) return fmt::format("exit code {}", *run.exit_code);
  return "no reason was recorded";
}

/// Cells of one recipe (they differ in nuisance keys, mostly the seed) in grid order.
struct Recipe {
  std::vector<const CellRow*> cells;
};

std::vector<Recipe> recipes_of(const std::vector<CellRow>& cells) {
  std::vector<Recipe> recipes;
  std::map<std::string, size_t> index;
  for (const CellRow& cell : cells) {
    const auto [found, fresh] = index.emplace(cell.recipe_id, recipes.size());
    if (fresh) recipes.emplace_back();
    recipes[found->second].cells.push_back(&cell);
  }
  return recipes;
}

std::string label_of(const Recipe& recipe) {
  std::vector<std::string> slugs;
  for (const CellRow* cell : recipe.cells) slugs.push_back(cell->slug);
  return evidence::shared_label(slugs);
}

std::vector<std::string> values_of(const CellRow& cell, const std::vector<std::string>& keys) {
  std::vector<std::string> values;
  for (const std::string& key : keys) {
    const auto found = cell.config.find(key);
    values.push_back(found == cell.config.end() ? "-" : found->second);
  }
  return values;
}

bool differs(const std::vector<const CellRow*>& cells, const std::string& key) {
  const auto first = values_of(*cells.front(), {key});
  return std::any_of(cells.begin(), cells.end(),
                     [&](const CellRow* cell) { return values_of(*cell, {key}) != first; });
}

/// An option that only some recipes have, because their component is another one: its name says so.
bool implied(const std::vector<const CellRow*>& cells, const std::string& key) {
  const std::string name = key.substr(0, key.rfind('.')) + ".name";
  if (key == name || !differs(cells, name)) return false;
  return std::any_of(cells.begin(), cells.end(),
                     [&](const CellRow* cell) { return !cell->config.contains(key); });
}

void add_reason(Model& model, Row& row, const std::vector<const RunRow*>& runs) {
  const auto bad = std::find_if(runs.begin(), runs.end(),
                                [](const RunRow* run) { return ended_badly(run->state); });
  if (bad == runs.end()) return;
  const RunRow& run = **bad;
  model.reasons.push_back(
      fmt::format("{}: {}.  log: assay log {}", state_label(run.state), why(run), run.run_id));
  row.footnote = static_cast<int>(model.reasons.size());
}

Row make_row(Model& model, const Recipe& recipe, const std::string& machine_id,
             const std::vector<const RunRow*>& runs) {
  Row row{.label = label_of(recipe), .cells = recipe.cells.size(), .machine_id = machine_id};
  row.state = state_of(runs);
  row.keys = values_of(*recipe.cells.front(), model.keys);
  for (const Column& column : model.columns) row.figures.push_back(combine(runs, column));
  for (const RunRow* run : runs) row.runs.push_back(run->run_id);
  row.labels = labels_of(recipe.cells, model.axes);
  add_reason(model, row, runs);
  return row;
}

}  // namespace

std::string state_label(const std::string& state) {
  if (!ended_badly(state)) return state;
  std::string label = state;
  for (char& c : label) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return label;
}

std::string state_of(const std::vector<const RunRow*>& runs) {
  if (runs.empty()) return "queued";
  std::map<std::string, size_t> counts;
  for (const RunRow* run : runs) ++counts[run->state];
  const size_t ok = counts["ok"];
  if (ok == runs.size()) return "ok";
  for (const char* state : kStates) {
    if (counts[state] == 0) continue;
    if (ok == 0) return state_label(state);
    return fmt::format("{}/{} ok, {}", ok, runs.size(), state_label(state));
  }
  return "ok";
}

Figure combine(const std::vector<const RunRow*>& runs, const Column& column) {
  std::vector<double> values;
  std::vector<int64_t> ids;
  bool any_ok = false, any_bad = false;
  for (const RunRow* run : runs) {
    any_bad = any_bad || ended_badly(run->state);
    if (run->state != "ok") continue;
    any_ok = true;
    const Figure* figure = run->figure(column.name);
    if (figure == nullptr) continue;
    if (!figure->nonfinite.empty()) return *figure;
    values.push_back(*figure->value);
    ids.push_back(run->run_id);
  }
  if (values.empty()) {
    return missing(any_bad && !any_ok ? FigureState::failed : FigureState::not_measured);
  }
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  double value = *high;
  if (column.statistic == Statistic::median) value = *store::quantile(values, 0.5);
  if (column.statistic == Statistic::mean) {
    double sum = 0;
    for (const double x : values) sum += x;
    value = sum / static_cast<double>(values.size());
  }
  const bool several = values.size() > 1;
  Figure figure = measured(value, several ? std::optional(*low) : std::nullopt,
                           several ? std::optional(*high) : std::nullopt, column.scale);
  figure.runs = std::move(ids);
  return figure;
}

std::vector<std::string> shown_keys(const std::vector<CellRow>& cells, bool all_keys) {
  std::vector<const CellRow*> firsts;
  for (const Recipe& recipe : recipes_of(cells)) firsts.push_back(recipe.cells.front());
  std::set<std::string> keys, swept;
  for (const CellRow* cell : firsts) {
    for (const auto& [key, value] : cell->config) keys.insert(key);
    for (const KeyValue& axis : cell->axes) swept.insert(axis.first);
  }
  std::vector<std::string> shown;
  for (const std::string& key : keys) {
    if (all_keys || (differs(firsts, key) && !implied(firsts, key))) shown.push_back(key);
  }
  std::stable_partition(shown.begin(), shown.end(),
                        [&](const std::string& key) { return swept.contains(key); });
  return shown;
}

void fill_rows(Model& model, const std::vector<CellRow>& cells) {
  using ByMachine = std::map<std::string, std::vector<const RunRow*>>;
  std::map<std::string, ByMachine> runs;
  for (const RunRow& run : model.runs) runs[run.recipe_id][run.machine_id].push_back(&run);
  for (const Recipe& recipe : recipes_of(cells)) {
    ByMachine& by_machine = runs[recipe.cells.front()->recipe_id];
    if (by_machine.empty()) by_machine[""];  // planned only
    for (const auto& [machine_id, own] : by_machine) {
      model.rows.push_back(make_row(model, recipe, machine_id, own));
    }
  }
}

}  // namespace assay::report
