// Tables of plugins, components and options.
#include "core/cli/plugins_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/nearest.h"
#include "core/plugin/option_text.h"

namespace assay::cli {
namespace {

using nlohmann::json;
using Row = std::vector<std::string>;

struct Listed {
  std::string component;
  const PluginFile* file;
  std::string state;  ///< "ok", "refused P01: ...", "defined twice"
};

/// Left-aligned columns, two spaces apart; the last is not padded.
std::string table(const std::vector<Row>& rows, const std::string& indent = "") {
  std::vector<size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line = indent;
    for (size_t i = 0; i + 1 < row.size(); ++i)
      line += fmt::format("{:<{}}", row[i], widths[i] + 2);
    if (!row.empty()) line += row.back();
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string joined(const std::vector<std::string>& words, const char* between = ", ") {
  return fmt::format("{}", fmt::join(words, between));
}

std::string state_of(const PluginFile& file, bool twice) {
  if (file.refusal) return "refused " + file.refusal->id + ": " + file.refusal->text;
  if (twice) return "defined twice (P02)";
  return file.warnings.empty() ? "ok" : "ok, warning: " + joined(file.warnings, "; ");
}

std::vector<Listed> listed(const Catalogue& catalogue, const ListOptions& options) {
  std::map<std::string, int> owners;
  for (const auto& file : catalogue.files()) {
    if (!file->accepted()) continue;
    for (const std::string& id : file->note->components) ++owners[id];
  }
  std::vector<Listed> rows;
  for (const auto& file : catalogue.files()) {
    const std::vector<std::string> none;
    const auto& ids = file->note ? file->note->components : none;
    for (const std::string& id : ids) {
      const bool wanted =
          !options.kind || id.starts_with(std::string(name_of(*options.kind)) + "/");
      if (wanted) rows.push_back({id, file.get(), state_of(*file, owners[id] > 1)});
    }
    if (ids.empty() && !options.kind) rows.push_back({"-", file.get(), state_of(*file, false)});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Listed& a, const Listed& b) { return a.component < b.component; });
  return rows;
}

std::string default_text(const OptionSpec& spec) {
  return spec.required ? "required" : print_option(spec, spec.default_value);
}

std::string options_table(const Component& component) {
  std::vector<Row> rows{{"option", "type", "default", "allowed", "affects", "meaning"}};
  for (const OptionSpec& spec : component.options) {
    std::string meaning = spec.doc;
    if (!spec.unit.empty()) meaning += " (" + spec.unit + ")";
    if (!spec.aliases.empty()) meaning += " (formerly " + joined(spec.aliases) + ")";
    rows.push_back({spec.name, name_of(spec.type), default_text(spec), allowed_values(spec),
                    name_of(spec.affects), meaning});
  }
  return table(rows, "  ");
}

std::string rules_text(const Component& component) {
  std::vector<Row> rows;
  for (const Rule& rule : component.rules) rows.push_back({rule.id, rule.expression, rule.text});
  for (const Conflict& conflict : component.conflicts) {
    rows.push_back({"R-CONFLICT", "not with " + conflict.with, conflict.reason});
  }
  return table(rows, "  ");
}

std::string facts_text(const json& facts) {
  std::vector<Row> rows;
  for (const auto& [name, value] : facts.items()) {
    if (!value.is_array())
      rows.push_back({name, value.is_string() ? value.get<std::string>() : value.dump()});
  }
  return table(rows, "  ");
}

}  // namespace

std::string list_text(const Catalogue& catalogue, const ListOptions& options) {
  std::vector<Row> rows{{"COMPONENT", "VERSION", "STATE", "FILE"}};
  std::string details;
  const PluginFile* last = nullptr;
  for (const Listed& row : listed(catalogue, options)) {
    rows.push_back({row.component, row.file->note ? row.file->note->version : "-", row.state,
                    row.file->place});
    if (options.all && row.file->refusal && row.file != last) {
      details += render(*row.file->refusal);
    }
    last = row.file;
  }
  if (rows.size() == 1)
    return "no plugin found; plugins are looked for in --plugin-path, "
           "ASSAY_PLUGIN_PATH and lib/assay/plugins\n";
  return table(rows) + details;
}

json list_json(const Catalogue& catalogue, const ListOptions& options) {
  json rows = json::array();
  for (const Listed& row : listed(catalogue, options)) {
    const PluginFile& file = *row.file;
    rows.push_back({{"component", row.component == "-" ? json() : json(row.component)},
                    {"plugin", file.note ? json(file.note->plugin) : json()},
                    {"version", file.note ? json(file.note->version) : json()},
                    {"accepted", file.accepted()},
                    {"state", row.state},
                    {"file", file.path.string()},
                    {"refusal", file.refusal ? json(render(*file.refusal)) : json()},
                    {"warnings", file.warnings}});
  }
  return rows;
}

std::pair<Kind, std::string> parse_component_id(std::string_view id) {
  const size_t slash = id.find('/');
  const std::string kind(id.substr(0, slash));
  if (slash == std::string_view::npos) {
    throw Error("'" + std::string(id) + "' is no component: write KIND/NAME, such as optim/adamw");
  }
  if (const auto parsed = kind_of(kind)) return {*parsed, std::string(id.substr(slash + 1))};
  std::vector<std::string> kinds;
  for (const Kind one : kKinds) kinds.emplace_back(name_of(one));
  const std::string near = did_you_mean(nearest(kind, kinds));
  throw Error("'" + kind + "' is no kind of component: " + joined(kinds), near);
}

std::string describe_text(const Component& component, const json& facts) {
  const Note& note = *component.file->note;
  std::string text =
      fmt::format("{} {} ({})\n", component.id(), note.version, component.file->place);
  const auto line = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) text += fmt::format("  {:<10}{}\n", name, value);
  };
  text += "  " + component.summary + "\n";
  line("reference", component.reference);
  line("serves", joined(component.dims));
  line("provides", joined(component.provides));
  line("needs", joined(component.needs));
  if (component.default_lr)
    line("lr", fmt::format("{} (default of optim.lr)", *component.default_lr));
  if (!component.options.empty()) text += "\n" + options_table(component);
  if (const std::string rules = rules_text(component); !rules.empty()) text += "\nrules\n" + rules;
  if (!facts.is_null()) text += "\nfacts with these options over bytes\n" + facts_text(facts);
  return text + "\n" + describe_yaml(component, {});
}

std::string describe_yaml(const Component& component, const OptionValues& settings) {
  std::vector<std::string> entries{"name: " + component.name};
  if (component.default_lr) entries.push_back(fmt::format("lr: {}", *component.default_lr));
  for (const OptionSpec& spec : component.options) {
    const auto set = settings.find(spec.name);
    if (set != settings.end()) {
      entries.push_back(spec.name + ": " + print_option(spec, set->second));
    } else if (!spec.required) {
      entries.push_back(spec.name + ": " + print_option(spec, spec.default_value));
    }
  }
  const std::string map = "{" + joined(entries) + "}";
  if (component.kind != Kind::parallel)
    return fmt::format("{}: {}\n", name_of(component.kind), map);
  return fmt::format("parallel: {{{}: {}}}\n",
                     component.dims.empty() ? "dp_replicate" : component.dims.front(), map);
}

}  // namespace assay::cli
