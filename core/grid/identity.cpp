// Writing and hashing of configurations.
#include "core/grid/identity.h"

#include "core/base/files.h"

namespace assay::grid {

Ids ids_of(const std::string& binaries, const std::string& config, const std::string& recipe_config,
           const std::string& data_fingerprint) {
  const std::string tail = ",\"data\":\"" + data_fingerprint + "\",\"v\":1}";
  const std::string head = "{\"binaries\":" + binaries + ",\"config\":";
  return {.cell_id = sha256(head + config + tail),
          .recipe_id = sha256(head + recipe_config + tail),
          .config_id = sha256("{\"config\":" + config + tail)};
}

std::string ConfigWriter::plain(const Layout& layout, const Values& values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) text += layout.before[i] + values[i]->json;
  return text + layout.after;
}

std::string ConfigWriter::hashed(const Layout& layout, const Values& values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    text += layout.before[i];
    text += content(layout.entries[i], *values[i]);
  }
  return text + layout.after;
}

std::string ConfigWriter::recipe(const Layout& layout, const Values& values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    if (layout.nuisance[i]) continue;
    text += layout.before_recipe[i];
    text += content(layout.entries[i], *values[i]);
  }
  return text + layout.after_recipe;
}

const std::string& ConfigWriter::content(const Entry& entry, const Typed& value) {
  if (!entry.spec || entry.spec->type != OptionType::path) return value.json;
  const std::string& path = std::get<std::string>(value.option);
  if (path.empty()) return value.json;
  const auto [found, fresh] = contents_.emplace(path, "");
  if (fresh) found->second = "\"" + hash_file_(path) + "\"";
  return found->second;
}

}  // namespace assay::grid
