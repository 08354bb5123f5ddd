// Keys and files of the describe cache.
#include "core/plugin/facts_cache.h"

#include <sys/stat.h>

#include "core/base/files.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kCacheSchema = 1;  // of the documents in the cache

/// Identity of the file that a path names; null if there is none.
json identity_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return nullptr;
  return {static_cast<int64_t>(status.st_size), static_cast<int64_t>(status.st_mtim.tv_sec),
          static_cast<int64_t>(status.st_mtim.tv_nsec), static_cast<uint64_t>(status.st_ino)};
}

fs::path entry_path(const std::string& folder, const std::string& key) {
  return cache_dir() / folder / (key + ".json");
}

}  // namespace

std::string manifest_key(const PluginFile& file) {
  return "v" + std::to_string(kCacheSchema) + "-" + file.sha256;
}

std::string facts_key(const PluginFile& file, const FactsRequest& request) {
  json files = json::object();
  if (request.kind == Kind::data) {
    for (const auto& [name, value] : request.options.items()) {
      if (value.is_string()) files[name] = identity_of(value.get<std::string>());
    }
  }
  const json key = {
      {"schema", kCacheSchema}, {"plugin", file.sha256},      {"kind", name_of(request.kind)},
      {"name", request.name},   {"options", request.options}, {"context", request.context},
      {"files", files}};
  return sha256(key.dump());
}

std::optional<json> cache_get(const std::string& folder, const std::string& key) {
  try {
    const fs::path file = entry_path(folder, key);
    if (!fs::exists(file)) return std::nullopt;
    json document = json::parse(read_file(file), nullptr, false);
    if (document.is_object()) return document;
  } catch (const std::exception&) {
  }
  return std::nullopt;
}

void cache_put(const std::string& folder, const std::string& key, const json& document) {
  try {
    const fs::path file = entry_path(folder, key);
    fs::create_directories(file.parent_path());
    write_file_atomically(file, document.dump());
  } catch (const std::exception&) {
    // A cache that cannot be written costs a worker start, never a run.
  }
}

}  // namespace assay
