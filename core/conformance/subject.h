// Subject: the component under test, and how the suites make instances of it and of its companions.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "assay/registry.h"
#include "core/sdk/loader.h"

namespace assay::conformance {

struct Subject {
  const LoadedPlugin* plugin = nullptr;
  std::shared_ptr<const Registration> entry{};  ///< a copy: companions come into the registry later

  bool provides(const std::string& capability) const;
  std::string id() const { return entry->id(); }

  /// Required paths filled with a small corpus; nothing if another required option has no value
  /// that could be guessed.
  std::optional<OptionValues> defaults() const;

  template <class Contract>
  std::unique_ptr<Contract> create() const {
    return registry().create<Contract>(entry->manifest.name, defaults().value());
  }
};

/// One test of a suite; `kind` empty: for every component.
struct Case {
  std::optional<Kind> kind{};
  const char* name = "";
  std::function<void(const Subject&)> run{};
};

std::vector<Case> common_cases();
std::vector<Case> optim_cases();
std::vector<Case> data_cases();
std::vector<Case> model_cases();
std::vector<Case> training_cases();  ///< memory, precision, compile, parallel
std::vector<Case> comm_cases();

/// Loads the installed plugin that brings the component; skips the running test if there is none.
/// Gives false then.
bool load_companion(Kind kind, const std::string& name);

/// What the process looked like before the plugin was opened, compared by a common case.
struct ProcessState {
  unsigned int mxcsr = 0;
  int threads = 0;
  bool grad_mode = true;
  std::string default_dtype{};
  int at_threads = 0;
  bool operator==(const ProcessState&) const = default;
};
ProcessState process_state();

/// Filled by main around load_plugin().
struct LoadRecord {
  ProcessState before{}, after{};
  std::string printed{};  ///< on standard output
};
LoadRecord& load_record();

}  // namespace assay::conformance
