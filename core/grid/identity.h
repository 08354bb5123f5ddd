// Identity: the canonical JSON of a cell and its three hashes (evidence.md 1.3).
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <unordered_map>

#include "core/grid/facts.h"

namespace assay::grid {

struct Ids {
  std::string cell_id, recipe_id, config_id;
};

/// Canonical texts: `config` with path options as the SHA-256 of their content, `recipe_config` the
/// same without nuisance keys.
Ids ids_of(const std::string& binaries, const std::string& config, const std::string& recipe_config,
           const std::string& data_fingerprint);

class ConfigWriter {
 public:
  using HashFile = std::function<std::string(const std::filesystem::path&)>;
  explicit ConfigWriter(HashFile hash_file) : hash_file_(std::move(hash_file)) {}

  /// The configuration as the worker reads it.
  static std::string plain(const Layout& layout, const Values& values);
  std::string hashed(const Layout& layout, const Values& values);
  std::string recipe(const Layout& layout, const Values& values);

 private:
  const std::string& content(const Entry& entry, const Typed& value);

  HashFile hash_file_;
  std::unordered_map<std::string, std::string> contents_;  ///< JSON text by path
};

}  // namespace assay::grid
