// Printing of plans.
#include "core/cli/plan_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "assay/error.h"
#include "core/base/nearest.h"

namespace assay::cli {
namespace {

constexpr size_t kShortId = 12;

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

size_t slug_width(const grid::Plan& plan) {
  size_t width = 0;
  for (const grid::Cell& cell : plan.cells) width = std::max(width, cell.slug.size());
  for (const grid::Skip& skip : plan.skips) width = std::max(width, skip.slug.size());
  return width;
}

std::string skip_reason(const grid::Skip& skip) {
  return skip.rule_id ? *skip.rule_id + ": " + skip.reason : skip.reason;
}

const char* severity_name(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::refused:
      return "refused";
    case Severity::warning:
      return "warning";
    case Severity::note:
      return "note";
  }
  return "";
}

nlohmann::json cell_json(const grid::Cell& cell) {
  nlohmann::json axes = nlohmann::json::array();
  for (const grid::AxisValue& axis : cell.axes) {
    axes.push_back({{"key", axis.key},
                    {"label", axis.label},
                    {"value", nlohmann::json::parse(axis.value_json)}});
  }
  return {{"ordinal", cell.ordinal},
          {"slug", cell.slug},
          {"cell_id", cell.cell_id},
          {"world", cell.world},
          {"recipe_id", cell.recipe_id},
          {"config_id", cell.config_id},
          {"axes", axes},
          {"config", cell.config()},
          {"notes", cell.notes}};
}

nlohmann::json skip_json(const grid::Skip& skip) {
  return {{"slug", skip.slug},
          {"rule", skip.rule},
          {"rule_id", skip.rule_id ? nlohmann::json(*skip.rule_id) : nlohmann::json()},
          {"reason", skip.reason},
          {"place", skip.place}};
}

std::string markdown_cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2) text.insert(at, "\\");
  return text;
}

}  // namespace

std::string tune_line(const grid::Plan& plan) {
  const grid::Tune& tune = *plan.tune;
  std::set<std::string> arms;
  for (const grid::Cell& cell : plan.cells) arms.insert(cell.arm);
  return fmt::format("tune: {} trials of {} steps come first: {} times {} on seed{} {}",
                     arms.size() * tune.factors.size() * tune.seeds.size(), tune.steps, tune.key,
                     fmt::join(tune.factors, ", "), tune.seeds.size() > 1 ? "s" : "",
                     fmt::join(tune.seeds, ", "));
}

std::string counts_line(const grid::Plan& plan) {
  const grid::PlanCounts& n = plan.counts;
  std::string text = fmt::format("{} expanded + {} included - {} excluded - {} by when", n.expanded,
                                 n.included, n.excluded, n.by_when);
  if (n.seeds > 1) text += fmt::format(", x {} seeds", n.seeds);
  text += fmt::format(" - {} duplicates - {} refused", n.duplicates, n.refused);
  if (n.filtered > 0) text += fmt::format(" - {} by --filter", n.filtered);
  const size_t cells = plan.cells.size();
  const size_t runs = cells * static_cast<size_t>(plan.repeats);
  return text + fmt::format(" = {} cell{}, {} run{}", cells, cells == 1 ? "" : "s", runs,
                            runs == 1 ? "" : "s");
}

std::string plan_text(const grid::Plan& plan) {
  std::string text = counts_line(plan) + "\n";
  if (plan.tune) text += tune_line(plan) + "\n";
  if (!plan.swept.empty()) text += "swept: " + joined(plan.swept) + "\n";
  const size_t width = slug_width(plan);
  for (const grid::Cell& cell : plan.cells) {
    text +=
        fmt::format("cell     {:<{}}  {}  {}\n", cell.slug, width, cell.cell_id.substr(0, kShortId),
                    cell.world == 1 ? "1 rank" : fmt::format("{} ranks", cell.world));
  }
  for (const grid::Skip& skip : plan.skips) {
    const char* word = skip.rule == "refused" ? "refused" : "skip";
    text += fmt::format("{:<7}  {:<{}}  {}\n", word, skip.slug, width, skip_reason(skip));
  }
  return text;
}

std::string plan_markdown(const grid::Plan& plan) {
  std::string text = "## Plan of " + plan.study + "\n\n" + counts_line(plan) + "\n\n";
  if (plan.tune) text += tune_line(plan) + "\n\n";
  if (!plan.swept.empty()) text += "Swept: " + joined(plan.swept) + "\n\n";
  text += "| cell | ranks | id |\n|---|---|---|\n";
  for (const grid::Cell& cell : plan.cells) {
    text += fmt::format("| {} | {} | `{}` |\n", cell.slug, cell.world,
                        cell.cell_id.substr(0, kShortId));
  }
  if (plan.skips.empty()) return text;
  text += "\n| left out | why |\n|---|---|\n";
  for (const grid::Skip& skip : plan.skips) {
    text += fmt::format("| {} | {} |\n", skip.slug, markdown_cell(skip_reason(skip)));
  }
  return text;
}

nlohmann::json plan_json(const grid::Plan& plan) {
  const grid::PlanCounts& n = plan.counts;
  nlohmann::json json = {{"schema_version", 1},
                         {"study", plan.study},
                         {"swept", plan.swept},
                         {"repeats", plan.repeats},
                         {"cells", nlohmann::json::array()},
                         {"skips", nlohmann::json::array()},
                         {"diagnostics", nlohmann::json::array()}};
  if (plan.tune) {
    json["tune"] = {{"key", plan.tune->key},
                    {"factors", plan.tune->factors},
                    {"steps", plan.tune->steps},
                    {"seeds", plan.tune->seeds},
                    {"score", plan.tune->score}};
  }
  json["counts"] = {{"expanded", n.expanded}, {"included", n.included},
                    {"excluded", n.excluded}, {"by_when", n.by_when},
                    {"seeds", n.seeds},       {"duplicates", n.duplicates},
                    {"refused", n.refused},   {"filtered", n.filtered}};
  for (const grid::Cell& cell : plan.cells) json["cells"].push_back(cell_json(cell));
  for (const grid::Skip& skip : plan.skips) json["skips"].push_back(skip_json(skip));
  for (const Diagnostic& d : plan.diagnostics) {
    json["diagnostics"].push_back({{"severity", severity_name(d.severity)},
                                   {"id", d.id},
                                   {"place", d.place},
                                   {"text", d.text},
                                   {"hints", d.hints}});
  }
  return json;
}

const grid::Cell& find_cell(const grid::Plan& plan, const std::string& which) {
  std::vector<const grid::Cell*> found;
  std::vector<std::string> slugs;
  for (const grid::Cell& cell : plan.cells) {
    slugs.push_back(cell.slug);
    if (cell.slug == which || cell.cell_id.starts_with(which)) found.push_back(&cell);
  }
  if (found.empty()) {
    const std::string near = did_you_mean(nearest(which, slugs));
    throw Error("the plan has no cell '" + which + "'",
                near.empty() ? "assay plan lists the cells" : near);
  }
  if (found.size() > 1) throw Error("'" + which + "' is the beginning of several cell ids");
  return *found[0];
}

std::string cell_text(const grid::Plan& plan, const std::string& which) {
  const grid::Cell& cell = find_cell(plan, which);
  std::string text = "cell      " + cell.slug + "\ncell_id   " + cell.cell_id + "\nrecipe_id " +
                     cell.recipe_id + "\nconfig_id " + cell.config_id + "\n";
  size_t key_width = 0, value_width = 0;
  for (const grid::Origin& origin : cell.origins) {
    key_width = std::max(key_width, origin.key.size());
    value_width = std::max(value_width, std::min<size_t>(origin.value_json.size(), 32));
  }
  for (const grid::Origin& origin : cell.origins) {
    text += fmt::format("{:<{}}  {:<{}}  {}\n", origin.key, key_width, origin.value_json,
                        value_width, origin.place);
  }
  for (const std::string& note : cell.notes) text += "note: " + note + "\n";
  return text;
}

}  // namespace assay::cli
