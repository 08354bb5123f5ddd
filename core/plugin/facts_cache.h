// FactsCache: what a describe run said, kept on disk under content hashes; a damaged entry is no
// entry.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/plugin/catalogue.h"

namespace assay {

/// Cache key of a manifest: the file's content.
std::string manifest_key(const PluginFile& file);

/// Cache key of facts: the plugin's content, the request, and for a path option also size, mtime
/// and inode of what it names.
std::string facts_key(const PluginFile& file, const FactsRequest& request);

/// `folder` is "manifests" or "facts". Unreadable caches give nothing and take nothing.
std::optional<nlohmann::json> cache_get(const std::string& folder, const std::string& key);
void cache_put(const std::string& folder, const std::string& key, const nlohmann::json& document);

}  // namespace assay
