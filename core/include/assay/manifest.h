// Manifest: what a component says of itself when it registers; plain data.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace assay {

/// True for every cell that may run, in the language of `when`; evaluated at plan time. A bare
/// name is an own option, `facts.*` a model fact, a capability is true if met, any other dotted
/// name a configuration key.
struct Rule {
  std::string id;  ///< "R-TPHEADS"
  std::string expression;
  std::string text;  ///< why, as the refusal prints it
};

struct Conflict {
  std::string with;  ///< "memory/offload"
  std::string reason;
};

struct Manifest {
  std::string name{};                   ///< [a-z][a-z0-9_]*, unique in its kind
  std::string summary{};                ///< one line
  std::string reference{};              ///< paper or URL
  std::optional<double> default_lr{};   ///< optim only, and required there
  std::vector<std::string> provides{};  ///< words of assay/capability.h
  std::vector<std::string> needs{};
  std::vector<Conflict> conflicts{};
  std::vector<Rule> rules{};
  std::vector<std::string> dims{};  ///< parallel only: the mesh dimensions it serves
};

}  // namespace assay
