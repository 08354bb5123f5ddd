// Reading of a study's top level.
#include "core/grid/study.h"

#include <algorithm>

#include "assay/error.h"
#include "core/base/nearest.h"
#include "core/base/units.h"
#include "core/grid/blocks.h"
#include "core/grid/compare_block.h"
#include "core/grid/host_keys.h"
#include "core/grid/layers.h"
#include "core/grid/reading.h"

namespace assay::grid {
namespace {

constexpr int64_t kLanguage = 1;
constexpr size_t kLongestName = 60;

const std::vector<std::string> kTopLevel = {"assay",    "study",   "extends", "plugins", "env",
                                            "defaults", "base",    "grid",    "derive",  "include",
                                            "exclude",  "when",    "seeds",   "repeats", "nuisance",
                                            "run",      "compare", "gate",    "report",  "tune"};

Mark named(const Member& member) {
  Mark mark = member.mark;
  mark.length = code_points(member.key);
  return mark;
}

/// A value as an expression spells it: text in quotes.
std::string quoted(const std::string& value) {
  const bool plain = parse_real(value) || parse_boolean(value) || parse_bytes(value) ||
                     parse_duration(value) || parse_count(value);
  return plain ? value : "'" + value + "'";
}

void drop_marks(Node& node) {
  node.mark = {};
  for (Node& item : node.items) drop_marks(item);
  for (Member& member : node.members) {
    member.mark = {};
    drop_marks(member.value);
  }
}

class StudyReader {
 public:
  StudyReader(Study& study, Findings& findings)
      : study_(study), findings_(findings), blocks_(study, findings) {}

  void read() {
    check_language();
    check_top_level();
    read_name();
    read_folders();
    read_settings("defaults", Layer::defaults, study_.defaults);
    read_settings("base", Layer::base, study_.base);
    if (const Member* grid = study_.root.member("grid")) {
      study_.grid = blocks_.block(grid->value, named(*grid));
    } else {
      study_.grid.kind = Block::Kind::cells;
      study_.grid.rows.emplace_back();
    }
    read_arms();
    read_cells();
    read_seeds();
    read_counts();
    check_compare(study_.root, findings_);
  }

  void command_line(const std::vector<std::string>& sets) {
    for (const std::string& text : sets) set(text);
  }

 private:
  const Member* member(std::string_view key) const { return study_.root.member(key); }

  void check_language() {
    const Member* version = member("assay");
    if (!version) {
      findings_.error("G01", study_.start(), "the language version is missing",
                      {"start the file with 'assay: 1'"});
      return;
    }
    const std::string& text = version->value.text;
    if (text == std::to_string(kLanguage)) return;
    const bool newer = !text.empty() && text.find_first_not_of("0123456789") == text.npos &&
                       text.find_first_not_of('0') != text.npos;
    findings_.error("G01", version->value.mark,
                    newer
                        ? "grid language " + text + " is newer than this assay understands (1)"
                        : "the language version must be 1; got '" + describe(version->value) + "'");
  }

  void check_top_level() {
    for (const Member& m : study_.root.members) {
      if (std::find(kTopLevel.begin(), kTopLevel.end(), m.key) != kTopLevel.end()) continue;
      std::vector<std::string> hints;
      const std::string near = did_you_mean(nearest(m.key, kTopLevel));
      const bool key = m.key.find('.') != m.key.npos || is_component_position(m.key) ||
                       m.key == "train" || m.key == "mesh" || m.key == "parallel";
      if (!near.empty()) hints.push_back(near);
      if (hints.empty() && key) hints.push_back("options of the cells stand under 'base:'");
      findings_.error("G04", named(m), "unknown key '" + m.key + "' at the top of a study", hints);
    }
  }

  void read_name() {
    const Member* name = member("study");
    if (!name) {
      findings_.error("G15", study_.start(), "the study has no name", {"add 'study: NAME'"});
      return;
    }
    study_.name = name->value.text;
    const std::string& text = study_.name;
    if (text.empty() || text.size() > kLongestName ||
        text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != text.npos) {
      findings_.error(
          "G15", name->value.mark,
          "'study' must be 1 to 60 of a-z, 0-9 and '-'; got '" + describe(name->value) + "'");
    }
  }

  void read_folders() {
    const Member* plugins = member("plugins");
    if (!plugins) return;
    if (!plugins->value.is_sequence()) {
      findings_.error("G15", plugins->value.mark, "'plugins' must be a list of folders");
    }
    for (const Node& item : plugins->value.items) {
      const auto folder = item.mark.source ? item.mark.source->folder : std::filesystem::path();
      study_.plugin_folders.push_back(
          std::filesystem::absolute(folder / item.text).lexically_normal());
    }
  }

  void read_settings(std::string_view section, Layer layer, Settings& out) {
    const Member* m = member(section);
    if (!m || m->value.is_null()) return;
    if (!m->value.is_map()) {
      findings_.error(
          "G15", m->value.mark,
          "'" + m->key + "' must be a map {key: value}; got '" + describe(m->value) + "'");
      return;
    }
    out = settings_of(m->value, "", m->mark, layer, findings_);
  }

  /// The arms of `compare:` are a last axis around the grid.
  void read_arms() {
    std::optional<Node> list = compared_arms(study_.root);
    if (!list) return;
    study_.extra_nodes.push_back(std::move(*list));
    const Node& arms = study_.extra_nodes.back();
    Block around{.kind = Block::Kind::product, .mark = arms.mark};
    Block inner{.kind = Block::Kind::product, .mark = arms.mark};
    around.blocks.push_back(std::move(study_.grid));
    inner.axes.push_back(blocks_.variants("arm", arms.mark, arms));
    around.blocks.push_back(std::move(inner));
    study_.grid = std::move(around);
  }

  void read_cells() {
    if (const Member* derive = member("derive")) {
      if (!derive->value.is_map()) {
        findings_.error("G15", derive->value.mark, "'derive' must be a map {key: expression}");
      }
      for (const FlatMember& m : flatten(derive->value, "", derive->mark, findings_)) {
        if (!m.key.empty()) add_derived(m);
      }
    }
    if (const Member* include = member("include")) {
      if (!list(*include, "cells")) return;
      for (const Node& item : include->value.items) study_.include.push_back(blocks_.row(item));
    }
    if (const Member* exclude = member("exclude")) {
      if (exclude->value.is_sequence()) {
        for (const Node& item : exclude->value.items)
          study_.exclude.push_back(blocks_.matcher(item));
      } else {
        study_.exclude.push_back(blocks_.matcher(exclude->value));
      }
    }
    if (const Member* when = member("when")) study_.when = blocks_.condition(when->value);
  }

  bool list(const Member& m, const std::string& of) {
    if (m.value.is_sequence()) return true;
    findings_.error("G15", m.value.mark, "'" + m.key + "' must be a list of " + of);
    return false;
  }

  void add_derived(const FlatMember& m) {
    Mark mark = m.mark;
    if (const Condition* condition = blocks_.condition(*m.value)) {
      study_.derive.push_back({m.key, mark, *condition});
    }
  }

  /// `seeds:`, else those over which `compare:` pairs its losses.
  void read_seeds() {
    const Member* seeds = member("seeds");
    if (seeds && !list(*seeds, "whole numbers")) return;
    const Node* values = seeds ? &seeds->value : compared_seeds(study_.root);
    if (!values || !values->is_sequence()) return;
    const Mark mark = seeds ? named(*seeds) : values->mark;
    const OptionSpec& spec = *find_key(host_keys(), "seed");
    for (const Node& item : values->items) read_value(item, spec, "seeds", findings_);
    if (std::find(study_.axis_names.begin(), study_.axis_names.end(), "seed") !=
        study_.axis_names.end()) {
      findings_.error("G05", mark, "'seed' is an axis of the grid already");
    }
    study_.seeds = blocks_.values("seed", mark, *values);
    if (values->items.empty()) {
      findings_.error("G15", mark, "'seeds' has no values: it leaves no cell");
    }
  }

  void read_counts() {
    if (const Member* repeats = member("repeats")) {
      const OptionSpec spec{.name = "repeats",
                            .type = OptionType::integer,
                            .default_value = int64_t{1},
                            .range = {1, 10'000}};
      if (const auto value = read_value(repeats->value, spec, "repeats", findings_)) {
        study_.repeats = static_cast<int>(std::get<int64_t>(*value));
      }
    }
    study_.nuisance = {"seed"};
    if (const Member* nuisance = member("nuisance")) {
      if (!list(*nuisance, "keys")) return;
      for (const Node& item : nuisance->value.items) study_.nuisance.push_back(item.text);
    }
    if (const Member* run = member("run")) {
      if (!run->value.is_map()) {
        findings_.error("G15", run->value.mark, "'run' must be a map {key: value}");
      }
      for (const Member& m : run->value.members) add_run_key(m.key, named(m), m.value);
    }
  }

  void add_run_key(const std::string& key, const Mark& mark, const Node& value) {
    const OptionSpec* spec = find_key(run_keys(), key);
    if (!spec) {
      std::vector<std::string> names;
      for (const OptionSpec& s : run_keys()) names.push_back("run." + s.name);
      const std::string near = did_you_mean(nearest("run." + key, names));
      findings_.error("G04", mark, "unknown option 'run." + key + "'",
                      {near.empty() ? "allowed: run.timeout, run.step_timeout, run.retries, "
                                      "run.devices, run.memory_limit, run.timed"
                                    : near});
      return;
    }
    read_value(value, *spec, "run." + key, findings_);
    study_.run[key] = &value;
  }

  void set(const std::string& text) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == text.npos) {
      findings_.error("G15", {}, "--set " + text + ": expected KEY=VALUE");
      return;
    }
    const std::string key = text.substr(0, equals), value = text.substr(equals + 1);
    study_.sources.push_back(Source::make("--set " + key, {}, value));
    Node node = read_yaml(value, *study_.sources.back(), findings_);
    drop_marks(node);
    if (node.is_null() && value.empty()) node = {.kind = Node::Kind::scalar, .quoted = true};
    study_.extra_nodes.push_back(std::move(node));
    const Node& kept = study_.extra_nodes.back();
    if (key.starts_with("run.")) return add_run_key(key.substr(4), {}, kept);
    for (Setting& s : settings_of(kept, key, {}, Layer::command_line, findings_)) {
      check_not_swept(s.key, text);
      study_.command_line.push_back(std::move(s));
    }
  }

  void check_not_swept(const std::string& key, const std::string& text) {
    const auto refuse = [&](const char* verb, const Mark& at) {
      findings_.error("G08", {},
                      "--set " + text + ": this study " + verb + " '" + key + "' (" +
                          at.position() + "). To run a part of the grid use --filter \"" + key +
                          " == " + quoted(text.substr(text.find('=') + 1)) + "\"");
    };
    if (const Mark* at = swept_at(study_.grid, key)) refuse("sweeps", *at);
    if (study_.seeds && key == "seed") refuse("sweeps", study_.seeds->mark);
    for (const Derived& d : study_.derive) {
      if (d.key == key) refuse("derives", d.key_mark);
    }
  }

  static const Mark* sets_key(const Axis& axis, const std::string& key) {
    for (const AxisPoint& point : axis.points) {
      for (const Setting& s : point.settings) {
        if (s.key == key) return &s.key_mark;
      }
    }
    return nullptr;
  }

  static const Mark* swept_at(const Block& block, const std::string& key) {
    for (const Axis& axis : block.axes) {
      if (const Mark* at = sets_key(axis, key)) return at;
    }
    for (const std::vector<Axis>& row : block.rows) {
      for (const Axis& axis : row) {
        if (const Mark* at = sets_key(axis, key)) return at;
      }
    }
    for (const Block& inner : block.blocks) {
      if (const Mark* at = swept_at(inner, key)) return at;
    }
    return nullptr;
  }

  Study& study_;
  Findings& findings_;
  BlockReader blocks_;
};

}  // namespace

Mark Study::start() const {
  return {.source = sources.empty() ? nullptr : sources.front().get(), .line = 1, .column = 1};
}

std::unique_ptr<Study> read_study(const PlanRequest& request, Findings& findings) {
  auto study = std::make_unique<Study>();
  study->file = request.file;
  study->root = load_layers(request.file, *study, findings);
  if (study->root.is_map()) {
    fill_environment(study->root, findings);
    StudyReader reader(*study, findings);
    reader.read();
    reader.command_line(request.sets);
  } else {
    findings.throw_if_any();
  }
  return study;
}

}  // namespace assay::grid
