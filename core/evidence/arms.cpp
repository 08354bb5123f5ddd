// Recipes of a study as arms.
#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/evidence/assess.h"

namespace assay::evidence {

using store::text;

std::string shared_label(const std::vector<std::string>& slugs) {
  std::string label = slugs.front();
  if (slugs.size() == 1) return label;
  for (const std::string& slug : slugs) {
    const auto end = std::mismatch(label.begin(), label.end(), slug.begin(), slug.end());
    label.erase(end.first, label.end());
  }
  // Where they part within a word, as in "s101" and "s102", the whole word is theirs.
  const auto parts_in_word = [&](const std::string& slug) {
    return slug.size() > label.size() &&
           std::isalnum(static_cast<unsigned char>(slug[label.size()]));
  };
  const bool digits = !label.empty() && std::isdigit(static_cast<unsigned char>(label.back()));
  if (digits && std::any_of(slugs.begin(), slugs.end(), parts_in_word)) {
    const size_t separator = label.find_last_of("_-.");
    if (separator != std::string::npos) label.resize(separator);
  }
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  while (!label.empty() && !is_word(label.back())) label.pop_back();
  for (const std::string_view tail : {"-seed", "-s", "_seed", "_s", ".seed", ".s"}) {
    if (label.ends_with(tail)) label.resize(label.size() - tail.size());
  }
  const bool nothing = label.empty() || label == "s" || label == "seed";
  return nothing ? slugs.front() : label;
}

std::vector<Arm> load_arms(const store::Reader& reader, int64_t study_id) {
  const store::Table rows = reader.query(
      "SELECT s.slug, s.cell_id, c.recipe_id, c.config_json FROM study_cells s JOIN cells c"
      " USING(cell_id) WHERE s.study_id=?1 ORDER BY s.ordinal",
      {store::Value(study_id)});
  std::vector<Arm> arms;
  std::vector<std::vector<std::string>> slugs;
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    const std::string recipe = *text(rows.at(i, "recipe_id"));
    const std::string config = *text(rows.at(i, "config_json"));
    const auto [found, fresh] = index.emplace(recipe, arms.size());
    if (fresh) {
      arms.push_back({.recipe_id = recipe, .config_json = config});
      slugs.emplace_back();
    }
    const auto seed = nlohmann::json::parse(config).value("seed", int64_t{0});
    arms[found->second].seeds.push_back({.seed = seed, .cell_id = *text(rows.at(i, "cell_id"))});
    slugs[found->second].push_back(*text(rows.at(i, "slug")));
  }
  for (size_t i = 0; i < arms.size(); ++i) arms[i].label = shared_label(slugs[i]);
  return arms;
}

}  // namespace assay::evidence
