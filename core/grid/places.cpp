// Collecting the marks of a study, and reading them back.
#include "core/grid/places.h"

#include <algorithm>

#include "core/grid/study.h"

namespace assay::grid {
namespace {

using json = nlohmann::json;

std::string line_key(int64_t file, int64_t line) {
  return std::to_string(file) + ":" + std::to_string(line);
}

class Collector {
 public:
  explicit Collector(const Study& study) : study_(study) {}

  json collect() {
    block(study_.grid);
    for (const std::vector<Axis>& row : study_.include) axes(row);
    if (study_.seeds) axis(*study_.seeds);
    for (const Derived& d : study_.derive) add("derive", d.key, d.condition.mark);
    settings("--set", study_.command_line);
    settings("base", study_.base);
    settings("defaults", study_.defaults);
    if (const Node* compare = study_.root.find("compare")) section("compare", "", *compare);
    return std::move(document_);
  }

 private:
  /// Settings of a block belong to its label; without one they are known only while no other block
  /// sets the same key.
  void block(const Block& b) {
    if (b.label) axis(*b.label);
    for (const Setting& s : b.set) {
      b.label ? add_setting(Places::point(b.label->name, b.label->points.front().label), s)
              : add_of_block(s);
    }
    axes(b.axes);
    for (const std::vector<Axis>& row : b.rows) axes(row);
    for (const Block& inner : b.blocks) block(inner);
  }

  void axes(const std::vector<Axis>& list) {
    for (const Axis& a : list) axis(a);
  }

  void axis(const Axis& a) {
    for (const AxisPoint& p : a.points) {
      const std::string scope = Places::point(a.name, p.label);
      add(scope, "", p.mark);
      settings(scope, p.settings);
    }
  }

  void settings(const std::string& scope, const Settings& list) {
    for (const Setting& s : list) add_setting(scope, s);
  }

  void add_setting(const std::string& scope, const Setting& s) {
    add(scope, s.key, s.value ? s.value->mark : s.key_mark);
  }

  void add_of_block(const Setting& s) {
    const bool known = document_["at"]["set"].contains(s.key);
    add_setting("set", s);
    if (known) document_["at"]["set"][s.key] = nullptr;
  }

  void section(const std::string& scope, const std::string& path, const Node& node) {
    if (!path.empty()) add(scope, path, node.mark);
    for (const Member& m : node.members) {
      section(scope, path.empty() ? m.key : path + "." + m.key, m.value);
    }
  }

  /// The first place of a key counts.
  void add(const std::string& scope, const std::string& key, const Mark& mark) {
    json& known = document_["at"][scope];
    if (known.contains(key)) return;
    const int64_t file = file_of(mark.source ? mark.source->name : mark.place());
    known[key] = {file, mark.line, mark.column, mark.length};
    if (!mark.source || mark.line < 1) return;
    const auto& lines = mark.source->lines;
    if (mark.line > static_cast<int>(lines.size())) return;
    document_["lines"][line_key(file, mark.line)] = lines[static_cast<size_t>(mark.line - 1)];
  }

  int64_t file_of(const std::string& name) {
    const auto found = std::find(files_.begin(), files_.end(), name);
    const int64_t index = found - files_.begin();
    if (found == files_.end()) {
      files_.push_back(name);
      document_["files"].push_back(name);
    }
    return index;
  }

  const Study& study_;
  std::vector<std::string> files_;
  json document_ = json::object();
};

}  // namespace

Places::Places(json document) : document_(std::move(document)) {
  if (!document_.is_object()) document_ = json::object();
}

Places Places::of(const Study& study) { return Places(Collector(study).collect()); }

std::string Places::point(const std::string& axis, const std::string& label) {
  return axis + "=" + label;
}

std::optional<Diagnostic> Places::find(const std::string& scope, const std::string& key) const {
  try {
    const json& at = document_.at("at").at(scope).at(key);
    const auto file = at.at(0).get<int64_t>();
    const int line = at.at(1), column = at.at(2);
    Diagnostic d{.place = document_.at("files").at(static_cast<size_t>(file))};
    if (line < 1) return d;
    d.place += ":" + std::to_string(line) + ":" + std::to_string(column);
    d.source_line = document_.at("lines").value(line_key(file, line), "");
    if (d.source_line.empty()) return d;
    d.line = line;
    d.column = column;
    d.length = at.at(3);
    return d;
  } catch (const json::exception&) {
    return std::nullopt;  // not set there, or stored before places were
  }
}

}  // namespace assay::grid
