// Registry: the components of the opened plugins, made by name from validated options.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "assay/api.h"
#include "assay/registrar.h"

namespace assay {

class ASSAY_API Registry {
 public:
  /// Takes a plugin's components. Throws Error if one is there already, or after freeze().
  void add(const std::vector<Registration>& entries);
  /// No component comes later: workers create from here on.
  void freeze() { frozen_ = true; }

  const Registration* find(Kind kind, std::string_view name) const;
  std::vector<const Registration*> entries() const;  ///< by kind, then by name

  /// A new component of contract C. Throws Error: no such component (with the nearest), an option
  /// that is refused, or what its constructor throws, each with the component's name in front.
  template <class C>
  std::unique_ptr<C> create(std::string_view name, const OptionValues& values = {}) const {
    const Registration& entry = get(C::kind, name);
    try {
      return static_cast<const Factory<C>&>(*entry.factory).create(values);
    } catch (...) {
      rethrow_from(entry.id());
    }
  }

 private:
  const Registration& get(Kind kind, std::string_view name) const;

  std::vector<Registration> entries_;
  bool frozen_ = false;

 public:
  /// Inside catch: throws the exception again with `component` in front of its text; InvalidRun,
  /// InfrastructureError and Error keep their type, anything else becomes an Error.
  [[noreturn]] static void rethrow_from(const std::string& component);
};

/// The one of this process.
ASSAY_API Registry& registry();

}  // namespace assay
