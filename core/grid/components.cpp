// The installed plugins as Components.
#include "core/grid/components.h"

#include <utility>

namespace assay::grid {
namespace {

class Installed final : public Components {
 public:
  explicit Installed(Catalogue catalogue) : catalogue_(std::move(catalogue)) {}

  const Component* find(Kind kind, std::string_view name) const override {
    return catalogue_.find(kind, name);
  }
  std::vector<std::string> names(Kind kind) const override { return catalogue_.names(kind); }
  Diagnostic unknown(Kind kind, std::string_view name) const override {
    return catalogue_.unknown(kind, name);
  }
  nlohmann::json facts(const FactsRequest& request) const override {
    return catalogue_.facts(request.kind, request.name, request.options, request.context);
  }
  void prepare_facts(std::span<const FactsRequest> requests) const override {
    catalogue_.prepare_facts(requests);
  }

 private:
  Catalogue catalogue_;
};

}  // namespace

std::unique_ptr<Components> components_of(Catalogue catalogue) {
  return std::make_unique<Installed>(std::move(catalogue));
}

}  // namespace assay::grid
