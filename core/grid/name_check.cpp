// The options that hold globs, and their judgement.
#include "core/grid/name_check.h"

#include <algorithm>

#include "assay/glob.h"
#include "core/base/nearest.h"

namespace assay::grid {
namespace {

constexpr NameGlobs kNameGlobs[] = {
    {.kind = Kind::optim, .component = "adamw", .option = "decay_exclude", .rule = "R-GROUPMATCH"},
    {.kind = Kind::optim,
     .component = "muon",
     .option = "rest",
     .rule = "R-GROUPMATCH",
     .rest = true},
    {.kind = Kind::precision,
     .component = "float8",
     .option = "filter",
     .rule = "R-F8FILTER",
     .matrices = true},
};

std::string name_of(const NameGlobs& option) {
  return std::string(assay::name_of(option.kind)) + "/" + option.component;
}

/// The nearest of the names that a glob could have meant, or how globs match.
template <class Named>
std::string hint_for(const std::string& glob, const std::vector<Named>& named) {
  if (named.empty()) return "the model has none; remove it";
  std::vector<std::string> names;
  for (const Named& p : named) names.push_back(p.name);
  const std::string near = did_you_mean(nearest(glob, names));
  if (!near.empty()) return near;
  return "globs match whole names, such as '" + names.front() + "'";
}

}  // namespace

const NameGlobs* name_globs_of(const Component& component) {
  for (const NameGlobs& option : kNameGlobs) {
    if (option.kind == component.kind && option.component == component.name) return &option;
  }
  return nullptr;
}

const std::vector<NameCheck::Parameter>& NameCheck::parameters_of(const Facts& model) {
  const auto [found, fresh] = parameters_.try_emplace(&model);
  if (!fresh || !model.json.is_object()) return found->second;
  for (const nlohmann::json& p : model.json.value("parameters", nlohmann::json::array())) {
    found->second.push_back({p.at("name"), p.at("shape").size(), p.at("role") == "matrix"});
  }
  return found->second;
}

std::optional<NameRefusal> NameCheck::judged(const NameGlobs& option,
                                             const std::vector<std::string>& globs,
                                             const Facts& model) {
  std::vector<Parameter> named = parameters_of(model);
  if (named.empty()) return std::nullopt;
  if (option.matrices) {
    std::erase_if(named, [](const Parameter& p) { return !p.linear || p.dims != 2; });
  }
  for (const std::string& glob : globs) {
    const auto match = [&](const Parameter& p) { return matches(glob, p.name); };
    if (std::any_of(named.begin(), named.end(), match)) continue;
    return NameRefusal{option.rule,
                       name_of(option) + ": '" + glob + "' of " + option.option + " matches no " +
                           (option.matrices ? "weight of a linear layer" : "parameter"),
                       hint_for(glob, named)};
  }
  for (const Parameter& p : named) {
    if (!option.rest || !p.linear || p.dims == 2 || matches_any(globs, p.name)) continue;
    return NameRefusal{"R-MUONDIM",
                       name_of(option) + ": '" + p.name + "' has " + std::to_string(p.dims) +
                           " dimensions; Muon orthogonalises matrices",
                       "add it to optim." + std::string(option.option)};
  }
  return std::nullopt;
}

const std::optional<NameRefusal>& NameCheck::refusal(const NameGlobs& option,
                                                     const std::vector<std::string>& globs,
                                                     const Facts& model) {
  const auto [found, fresh] = answers_.try_emplace(Question{&option, &model, globs});
  if (fresh) found->second = judged(option, globs, model);
  return found->second;
}

}  // namespace assay::grid
