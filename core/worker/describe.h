// describe: answers what plugins say of themselves, and facts of models and data sources.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

namespace assay::worker {

/// `assay-worker describe REQUEST.json`: prints the answer as one JSON document on standard output.
/// While plugin code runs, standard output is standard error. Gives the exit code.
int describe_command(const std::filesystem::path& request_file);

/// {"files": [...], "facts": [...]} -> {"manifests": {file: manifest or error}, "facts": [...]}.
nlohmann::json describe(const nlohmann::json& request);

/// The manifest document of a loaded plugin.
nlohmann::json manifest_of(const std::string& plugin, const std::string& version);

}  // namespace assay::worker
