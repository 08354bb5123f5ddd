// From keys to the axis points, derivations and layers that set them.
#include "core/cli/lint_places.h"

#include <algorithm>

namespace assay::cli {
namespace {

using nlohmann::json;
using store::text;
using store::Value;

json stored_places(const std::string& resolved_json) {
  const json resolved = json::parse(resolved_json, nullptr, /*allow_exceptions=*/false);
  return resolved.is_object() ? resolved.value("places", json()) : json();
}

constexpr std::string_view kCompare = "compare.";

/// The key, or the component whose option it is: "optim.beta1" follows from "optim.name".
std::vector<std::string> with_component(const std::string& key) {
  const std::string component = key.substr(0, key.rfind('.')) + ".name";
  return component == key ? std::vector{key} : std::vector{key, component};
}

/// Scopes of the cell's axes, those that change with the recipe first.
std::vector<std::string> points_of(const store::Reader& reader, int64_t study_id,
                                   const std::string& cell_id) {
  const store::Table rows = reader.query(
      "SELECT key, label FROM cell_axis WHERE study_id=?1 AND cell_id=?2 ORDER BY key='seed', key",
      {Value(study_id), Value(cell_id)});
  std::vector<std::string> points;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    points.push_back(grid::Places::point(*text(rows.at(i, "key")), *text(rows.at(i, "label"))));
  }
  return points;
}

}  // namespace

LintPlaces::LintPlaces(const store::Reader& reader, const store::StudyInfo& study)
    : reader_(reader), study_(study), places_(stored_places(study.resolved_json)) {}

std::optional<Diagnostic> LintPlaces::setting(const std::string& key,
                                              const host::ComparisonPlan& comparison) const {
  if (auto place = places_.find("derive", key)) return place;
  for (const evidence::Arm* arm : {&comparison.candidate, &comparison.base}) {
    for (const std::string& point :
         points_of(reader_, study_.study_id, arm->seeds.front().cell_id)) {
      if (auto place = places_.find(point, key)) return place;
    }
  }
  for (const char* scope : {"set", "--set", "base", "defaults"}) {
    if (auto place = places_.find(scope, key)) return place;
  }
  return std::nullopt;
}

std::optional<Diagnostic> LintPlaces::point(const host::ComparisonPlan& comparison) const {
  const auto of = [&](const evidence::Arm& arm) {
    return points_of(reader_, study_.study_id, arm.seeds.front().cell_id);
  };
  const auto base = of(comparison.base);
  for (const std::string& point : of(comparison.candidate)) {
    if (std::find(base.begin(), base.end(), point) != base.end()) continue;
    if (auto place = places_.find(point, "")) return place;
  }
  return std::nullopt;
}

Diagnostic LintPlaces::of(const evidence::LintFinding& finding,
                          const host::ComparisonPlan& comparison) const {
  for (const std::string& key : finding.keys) {
    if (key.starts_with(kCompare)) {
      if (auto place = places_.find("compare", key.substr(kCompare.size()))) return *place;
    }
    for (const std::string& name : with_component(key)) {
      if (auto place = setting(name, comparison)) return *place;
    }
  }
  if (auto place = point(comparison)) return *place;
  return {.place = study_.name + ": " + comparison.design.candidate + " against " +
                   comparison.design.baseline};
}

}  // namespace assay::cli
