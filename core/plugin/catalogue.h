// Catalogue: the installed plugins as the CLI sees them: notes at once, manifests and facts when
// asked for, through a describer and a cache.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/plugin/component.h"
#include "core/plugin/note.h"

namespace assay {

/// One file `*.assay.so` of the searched folders.
struct PluginFile {
  std::filesystem::path path{};  ///< absolute
  std::string place{};           ///< as messages name it
  std::string sha256{};          ///< of an accepted file
  std::optional<Note> note{};    ///< unless it could not be read
  std::optional<Diagnostic> refusal{};
  std::vector<std::string> warnings{};
  bool accepted() const { return !refusal; }
};

/// Runs `describe` somewhere; the real one starts a worker.
class Describer {
 public:
  virtual ~Describer();
  /// Answers one request of the describe protocol. Throws Error when the process dies.
  virtual nlohmann::json describe(const nlohmann::json& request) = 0;
};

/// Facts of one component with one set of options; `context` is {"vocab": n} for a model.
struct FactsRequest {
  Kind kind = Kind::model;
  std::string name{};
  nlohmann::json options = nlohmann::json::object();
  nlohmann::json context = nlohmann::json::object();
};

class Catalogue {
 public:
  /// Reads the notes of every plugin in `folders`, in this order; opens no library. Folders that do
  /// not exist are skipped. `describer` may be null: then nothing beyond the caches is known.
  static Catalogue load(const std::vector<std::filesystem::path>& folders,
                        std::shared_ptr<Describer> describer);
  Catalogue(Catalogue&&) noexcept;
  Catalogue& operator=(Catalogue&&) noexcept;
  ~Catalogue();

  const std::vector<std::unique_ptr<PluginFile>>& files() const;

  /// The component, or null if no plugin has it. Throws DiagnosticError when it is defined twice
  /// (P02), when its plugin is refused (P01, P04-P09) or does not load.
  const Component* find(Kind kind, std::string_view name) const;
  /// Names of the kind that plugins which can be used define, sorted.
  std::vector<std::string> names(Kind kind) const;
  /// "no component optim/loin" (P03) with the nearest names; without a place.
  Diagnostic unknown(Kind kind, std::string_view name) const;

  /// Facts of a component (models and data sources have them). Cached; throws Error with the
  /// plugin's words.
  nlohmann::json facts(Kind kind, const std::string& name, const nlohmann::json& options,
                       const nlohmann::json& context = nlohmann::json::object()) const;
  /// Fills the cache for many requests with one worker; errors come out of facts().
  void prepare_facts(std::span<const FactsRequest> requests) const;

 private:
  struct State;
  explicit Catalogue(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Where plugins are looked for: `own` (the study's and the command line's) first, then
/// ASSAY_PLUGIN_PATH, then lib/assay/plugins beside the executable's folder. Never the current
/// folder.
std::vector<std::filesystem::path> plugin_folders(const std::vector<std::filesystem::path>& own);

/// Describes in `assay-worker` of the executable's folder.
std::shared_ptr<Describer> worker_describer();

}  // namespace assay
