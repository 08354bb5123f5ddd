// Name globs at plan time: whether each picks a parameter of the model, and what Muon is left with.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/grid/facts.h"

namespace assay::grid {

/// A list option whose items are globs over the names of the model's parameters.
struct NameGlobs {
  Kind kind;
  const char* component;
  const char* option;
  const char* rule;       ///< refuses a glob without a match
  bool matrices = false;  ///< only 2-D weights of linear layers count
  bool rest = false;      ///< R-MUONDIM: every linear weight that they do not pick is 2-D
};

/// The option of this component, or null if it has none.
const NameGlobs* name_globs_of(const Component& component);

struct NameRefusal {
  std::string rule, text, hint;
};

/// R-GROUPMATCH, R-F8FILTER and R-MUONDIM (recipes 5.1, 4.2, 5.2), judged on the model's facts; the
/// plugins refuse the same when a recipe is assembled. A model without facts is not judged.
class NameCheck {
 public:
  const std::optional<NameRefusal>& refusal(const NameGlobs& option,
                                            const std::vector<std::string>& globs,
                                            const Facts& model);

 private:
  struct Parameter {
    std::string name;
    size_t dims;
    bool linear;
  };
  using Question = std::tuple<const NameGlobs*, const Facts*, std::vector<std::string>>;

  const std::vector<Parameter>& parameters_of(const Facts& model);
  std::optional<NameRefusal> judged(const NameGlobs& option, const std::vector<std::string>& globs,
                                    const Facts& model);

  std::map<const Facts*, std::vector<Parameter>> parameters_;
  std::map<Question, std::optional<NameRefusal>> answers_;
};

}  // namespace assay::grid
