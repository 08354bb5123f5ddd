// Evaluates an expression over the dotted keys of a stored configuration.
#include "core/host/filter.h"

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/diagnostic.h"
#include "core/base/nearest.h"
#include "core/grid/expression.h"

namespace assay::host {
namespace {

grid::Value to_value(const nlohmann::json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (!json.is_array()) return {};
  std::vector<grid::Value> items;
  for (const nlohmann::json& item : json) items.push_back(to_value(item));
  return items;
}

void flatten(const nlohmann::json& config, const std::string& prefix,
             std::map<std::string, grid::Value>& out) {
  for (const auto& [key, value] : config.items()) {
    if (value.is_object()) {
      flatten(value, prefix + key + ".", out);
    } else {
      out[prefix + key] = to_value(value);
    }
  }
}

std::map<std::string, grid::Value> keys_of(const std::string& config_json) {
  std::map<std::string, grid::Value> keys;
  flatten(nlohmann::json::parse(config_json), "", keys);
  return keys;
}

class ConfigScope final : public grid::Scope {
 public:
  ConfigScope(const grid::Expression& expression, std::map<std::string, grid::Value> keys)
      : expression_(expression), keys_(std::move(keys)) {}

  grid::Value value(size_t name) const override {
    const std::string& key = expression_.names()[name].text;
    for (const std::string& spelling : {key, key + ".name"}) {  // `memory` means memory.name
      const auto found = keys_.find(spelling);
      if (found != keys_.end()) return found->second;
    }
    return {};
  }

 private:
  const grid::Expression& expression_;
  const std::map<std::string, grid::Value> keys_;
};

[[noreturn]] void refuse(const std::string& id, const std::string& text, const std::string& hint) {
  Diagnostic diagnostic{.id = id, .place = "command line", .text = "--filter: " + text};
  if (!hint.empty()) diagnostic.hints.push_back(hint);
  throw DiagnosticError(std::move(diagnostic));
}

void check_names(const grid::Expression& expression, const std::vector<std::string>& configs) {
  std::set<std::string> known;
  for (const std::string& config : configs) {
    for (const auto& [key, value] : keys_of(config)) known.insert(key);
  }
  const std::vector<std::string> candidates(known.begin(), known.end());
  for (const grid::ExpressionName& name : expression.names()) {
    if (known.contains(name.text) || known.contains(name.text + ".name")) continue;
    refuse("G04", "no cell of the study has a key '" + name.text + "'",
           did_you_mean(nearest(name.text, candidates)));
  }
}

}  // namespace

std::function<bool(const store::QueuedRun&)> run_filter(const std::string& text,
                                                        const std::vector<std::string>& configs) {
  std::shared_ptr<const grid::Expression> expression;
  try {
    expression = std::make_shared<grid::Expression>(grid::Expression::compile(text));
  } catch (const grid::ExpressionError& e) {
    refuse(e.id, std::string(e.what()) + " in \"" + text + "\"", "");
  }
  check_names(*expression, configs);
  return [expression](const store::QueuedRun& run) {
    try {
      return expression->holds(ConfigScope(*expression, keys_of(run.config_json)));
    } catch (const grid::ExpressionError& e) {
      refuse(e.id, std::string(e.what()) + " (cell " + run.slug + ")", "");
    }
  };
}

}  // namespace assay::host
