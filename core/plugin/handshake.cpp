// The comparison of two notes, field by field; all differences in one message.
#include "core/plugin/handshake.h"

#include <algorithm>

namespace assay {
namespace {

struct Difference {
  std::string field, plugin, worker, remark;
  bool refuses = true;
};

/// Whether this processor runs code of that level.
bool processor_has(const std::string& isa) {
  if (isa == "x86-64") return true;
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi2");
  if (isa == "x86-64-v3") return v3;
  return isa == "x86-64-v4" && v3 && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

const char* processor_level() {
  return processor_has("x86-64-v4")   ? "x86-64-v4"
         : processor_has("x86-64-v3") ? "x86-64-v3"
                                      : "x86-64";
}

/// "gcc 12.2" -> "gcc 12"
std::string major_of(const std::string& compiler) { return compiler.substr(0, compiler.find('.')); }

/// The rule of one field; nothing when the values agree.
std::optional<Difference> difference(const std::string& field, const std::string& plugin,
                                     const std::string& worker) {
  if (field == "isa") {
    if (processor_has(plugin)) return std::nullopt;
    return Difference{field, plugin, processor_level(), "(this processor)"};
  }
  if (plugin == worker) return std::nullopt;
  if ((field == "cuda" || field == "nccl") && plugin == "none") return std::nullopt;
  if (field == "compiler") {
    if (major_of(plugin) == major_of(worker)) return std::nullopt;
    return Difference{field, plugin, worker, "(warning: other major version)", false};
  }
  if (field == "build") {
    return Difference{field, plugin, worker,
                      plugin == "debug" ? "(warning: never time it)" : "(warning)", false};
  }
  if (field == "sdk_hash") {
    constexpr size_t kShown = 16;
    return Difference{field, plugin.substr(0, kShown), worker.substr(0, kShown),
                      "(public headers differ)"};
  }
  return Difference{field, plugin, worker, ""};
}

void pad(std::string& text, size_t width) { text.resize(std::max(text.size(), width), ' '); }

/// Columns: field, "plugin VALUE", "worker VALUE", remark.
std::vector<std::string> table(const std::vector<Difference>& differences) {
  size_t field = 0, plugin = 0, worker = 0;
  for (const Difference& d : differences) {
    field = std::max(field, d.field.size());
    plugin = std::max(plugin, d.plugin.size());
    worker = std::max(worker, d.worker.size());
  }
  std::vector<std::string> lines;
  for (const Difference& d : differences) {
    std::string name = d.field, left = "plugin " + d.plugin, right = "worker " + d.worker;
    pad(name, field + 2);
    pad(left, plugin + 10);
    if (!d.remark.empty()) pad(right, worker + 10);
    lines.push_back(name + left + right + d.remark);
  }
  return lines;
}

}  // namespace

Verdict compare_notes(const Note& plugin, const Note& worker, const std::string& place) {
  std::vector<Difference> differences;
  for (const auto& [name, field] : kEnvironmentFields) {
    if (auto d = difference(name, plugin.*field, worker.*field)) differences.push_back(*d);
  }
  Verdict verdict;
  const bool refused = std::any_of(differences.begin(), differences.end(),
                                   [](const Difference& d) { return d.refuses; });
  if (refused) {
    Diagnostic d;
    d.id = "P01";
    d.place = place;
    d.text = "plugin '" + plugin.plugin + "' is built for another environment";
    d.details = table(differences);
    d.hints = {"rebuild it against this SDK: cmake --build <its build folder> --clean-first"};
    verdict.refusal = std::move(d);
    return verdict;
  }
  for (const Difference& d : differences) {
    verdict.warnings.push_back(d.field + ": plugin " + d.plugin + ", worker " + d.worker + " " +
                               d.remark);
  }
  return verdict;
}

}  // namespace assay
