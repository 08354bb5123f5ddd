// What a registration must keep: names, capability words, default rates, dimensions, options.
#include "assay/registrar.h"

#include <algorithm>
#include <array>
#include <set>

#include "assay/capability.h"
#include "core/base/nearest.h"

namespace assay {
namespace {

bool is_name(std::string_view text) {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  return !text.empty() && lower(text[0]) && std::all_of(text.begin(), text.end(), [&](char c) {
    return lower(c) || (c >= '0' && c <= '9') || c == '_';
  });
}

void check_words(const std::string& id, const std::vector<std::string>& words) {
  const std::vector<std::string> known(kCapabilities.begin(), kCapabilities.end());
  for (const std::string& word : words) {
    if (std::find(known.begin(), known.end(), word) != known.end()) continue;
    throw Error(id + " names an unknown capability '" + word + "'",
                did_you_mean(nearest(word, known)));
  }
}

void check_dims(const Registration& entry) {
  const std::vector<std::string> known{"dp_replicate", "dp_shard", "cp", "tp", "pp", "ep"};
  const std::vector<std::string>& dims = entry.manifest.dims;
  if ((entry.kind == Kind::parallel) == dims.empty()) {
    throw Error(entry.id() + (dims.empty() ? " names no mesh dimension that it serves"
                                           : " names mesh dimensions, which only parallel/ has"));
  }
  for (const std::string& dim : dims) {
    if (std::find(known.begin(), known.end(), dim) != known.end()) continue;
    throw Error(entry.id() + " names an unknown mesh dimension '" + dim + "'",
                did_you_mean(nearest(dim, known)));
  }
}

void check_rate(const Registration& entry) {
  const std::optional<double>& rate = entry.manifest.default_lr;
  if (entry.kind == Kind::optim && !(rate && *rate > 0)) {
    throw Error(entry.id() + " declares no default_lr above 0");
  }
  if (entry.kind != Kind::optim && rate) {
    throw Error(entry.id() + " declares default_lr, which only optim/ has");
  }
}

void check_options(const Registration& entry) {
  std::set<std::string> taken{"name"};
  if (entry.kind == Kind::optim) taken.insert("lr");
  for (const OptionSpec& spec : entry.options) {
    std::vector<std::string> names = spec.aliases;
    names.push_back(spec.name);
    for (const std::string& name : names) {
      if (!is_name(name)) throw Error(entry.id() + ": '" + name + "' is no option name");
      if (!taken.insert(name).second) {
        throw Error(entry.id() + ": option '" + name + "' is declared twice or is the host's");
      }
    }
    if (!spec.required) check_option(spec, spec.default_value);
  }
}

void check_rules(const Registration& entry) {
  for (const Rule& rule : entry.manifest.rules) {
    if (rule.id.rfind("R-", 0) != 0 || rule.expression.empty() || rule.text.empty()) {
      throw Error(entry.id() + ": rule '" + rule.id + "' needs an id R-..., an expression, a text");
    }
  }
  for (const Conflict& conflict : entry.manifest.conflicts) {
    const size_t slash = conflict.with.find('/');
    if (slash == std::string::npos || !kind_of(conflict.with.substr(0, slash)) ||
        conflict.reason.empty()) {
      throw Error(entry.id() + ": conflict with '" + conflict.with +
                  "' needs KIND/NAME and a reason");
    }
  }
}

}  // namespace

FactoryBase::~FactoryBase() = default;

Registrar::Registrar(std::string plugin) : plugin_(std::move(plugin)) {}
Registrar::~Registrar() = default;

void Registrar::take(Registration entry) {
  entry.plugin = plugin_;
  if (!is_name(entry.manifest.name)) {
    throw Error("'" + entry.manifest.name + "' is no component name: [a-z][a-z0-9_]*");
  }
  check_words(entry.id(), entry.manifest.provides);
  check_words(entry.id(), entry.manifest.needs);
  check_dims(entry);
  check_rate(entry);
  check_options(entry);
  check_rules(entry);
  for (const Registration& other : entries_) {
    if (other.id() == entry.id()) throw Error(entry.id() + " is registered twice");
  }
  entries_.push_back(std::move(entry));
}

}  // namespace assay
