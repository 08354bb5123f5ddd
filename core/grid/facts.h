// Facts: what data sources and models say of themselves, once per distinct set of options.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/grid/layout.h"

namespace assay::grid {

/// One answer of `describe`, or the reason why there is none.
struct Facts {
  nlohmann::json json;
  std::optional<std::string> error;
  std::string hint;
  std::unordered_map<std::string, Value> values;  ///< by dotted name, filled when first asked for

  /// Undefined for a fact that is absent or no scalar. Two are lists: `parameter_names`, and
  /// `matrix_names` of the 2-D weights of linear layers.
  const Value& value(const std::string& name);
};

/// The values of a cell, by entry of its layout.
using Values = std::vector<const Typed*>;

class FactsBook {
 public:
  FactsBook(const Components& components, const Keys& keys)
      : components_(components), keys_(keys) {}

  /// Asks for the facts of many cells together: first their data, then their models.
  void prepare(const std::vector<std::pair<const Layout*, const Values*>>& cells);

  Facts& data(const Layout& layout, const Values& values);
  Facts& model(const Layout& layout, const Values& values);

 private:
  FactsRequest request(Kind kind, const Layout& layout, const Values& values) const;
  FactsRequest model_request(const Layout& layout, const Values& values);
  Facts& get(FactsRequest request);

  const Components& components_;
  const Keys& keys_;
  std::map<std::string, std::unique_ptr<Facts>> known_;
  // Memo of the last cell's section text, since neighbours usually share it.
  std::unordered_map<std::string, Facts*> by_section_;
};

}  // namespace assay::grid
