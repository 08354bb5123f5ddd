// Plan rows to store rows, and queries over them.
#include "core/host/study.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "assay/error.h"
#include "core/base/files.h"
#include "core/base/units.h"
#include "core/plugin/note.h"

namespace assay::host {
namespace {

using nlohmann::json;

store::Cell store_cell(const grid::Cell& cell, int repeats) {
  store::Cell row{.cell_id = cell.cell_id,
                  .recipe_id = cell.recipe_id,
                  .config_id = cell.config_id,
                  .config_json = cell.config_json,
                  .binaries = json::parse(cell.binaries_json),
                  .data_fingerprint = cell.data_fingerprint,
                  .ordinal = cell.ordinal,
                  .slug = cell.slug,
                  .repeats = repeats};
  for (const grid::AxisValue& axis : cell.axes) {
    row.axes.push_back({axis.key, axis.label, json::parse(axis.value_json)});
  }
  return row;
}

void store_plugins(store::Store& store, const grid::Plan& plan) {
  std::set<std::string> used;
  for (const grid::Cell& cell : plan.cells) {
    used.insert(cell.plugin_files.begin(), cell.plugin_files.end());
  }
  for (const std::string& file : used) store_plugin(store, file);
}

json execution_json(const grid::RunKeys& keys) {
  json out = {{"timeout_ns", keys.timeout_ns},
              {"step_timeout_ns", keys.step_timeout_ns},
              {"retries", keys.retries},
              {"devices", keys.devices},
              {"timed", keys.timed}};
  if (keys.memory_limit_bytes) out["memory_limit_bytes"] = *keys.memory_limit_bytes;
  return out;
}

/// Hashes each file once per size and time of change: cells share plugins.
const std::string& file_hash(const std::filesystem::path& file) {
  struct Known {
    uintmax_t size;
    std::filesystem::file_time_type changed;
    std::string sha256;
  };
  static std::map<std::filesystem::path, Known> known;
  const auto size = std::filesystem::file_size(file);
  const auto changed = std::filesystem::last_write_time(file);
  auto [entry, is_new] = known.try_emplace(file, Known{size, changed, {}});
  if (is_new || entry->second.size != size || entry->second.changed != changed) {
    entry->second = {size, changed, sha256_file(file)};
  }
  return entry->second.sha256;
}

/// The build stamp beside a plugin (`lion.assay.json` of `lion.assay.so`).
store::Text build_stamp(const std::filesystem::path& plugin) {
  const auto file = std::filesystem::path(plugin).replace_extension(".json");
  if (!std::filesystem::exists(file)) return std::nullopt;
  const json stamp = json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  if (!stamp.is_object() || !stamp.value("commit", json()).is_string()) return std::nullopt;
  const bool dirty = stamp.value("dirty", json()) == true;
  return stamp.at("commit").get<std::string>() + (dirty ? "+" : "");
}

UsedPlugin find_plugin(const store::Reader& reader, const std::string& name,
                       const std::string& sha256) {
  const auto rows = reader.query(
      "SELECT plugin_id, kind, name, path FROM plugins WHERE sha256=?1 ORDER BY plugin_id DESC",
      {store::Value(sha256)});
  std::string path;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    path = *store::text(rows.at(i, "path"));
    if (!std::filesystem::exists(path) || file_hash(path) != sha256) continue;
    return {.plugin_id = *store::integer(rows.at(i, "plugin_id")),
            .role = *store::text(rows.at(i, "kind")) + "/" + *store::text(rows.at(i, "name")),
            .path = path,
            .git = build_stamp(path)};
  }
  throw InfrastructureError(
      "plugin '" + name + "' is gone or has changed since the cell was planned" +
          (path.empty() ? "" : " (" + path + ")"),
      "run the study file again: it plans the cells with the plugins as they are now");
}

}  // namespace

int64_t store_plugin(store::Store& store, const std::filesystem::path& file) {
  const Note note = parse_note(read_note_text(file, file.string()), file.string());
  const std::string id = note.components.empty() ? "" : note.components.front();
  return store.add_plugin({.name = note.plugin,
                           .kind = id.substr(0, id.find('/')),
                           .version = note.version,
                           .abi = parse_integer(note.assay_api).value_or(0),
                           .path = file.string(),
                           .sha256 = grid::cached_file_hash(file),
                           .build_type = note.build});
}

int64_t store_plan(store::Store& store, const grid::Plan& plan) {
  json resolved = json::parse(plan.resolved_json, nullptr, /*allow_exceptions=*/false);
  if (!resolved.is_object()) resolved = json::object();
  resolved["execution"] = execution_json(plan.run);
  resolved["places"] = plan.places;
  store::Study study{.name = plan.study,
                     .yaml_sha256 = sha256(plan.yaml_text + "\n" + plan.resolved_json),
                     .yaml_text = plan.yaml_text,
                     .resolved_json = resolved.dump(),
                     .nuisance = plan.nuisance};
  for (const grid::Cell& cell : plan.cells) study.cells.push_back(store_cell(cell, plan.repeats));
  for (const grid::Skip& skip : plan.skips) {
    study.skips.push_back({.slug = skip.slug,
                           .line = skip.line,
                           .reason = skip.reason,
                           .rule = skip.rule,
                           .rule_id = skip.rule_id});
  }
  store_plugins(store, plan);
  return store.add_study(study);
}

grid::RunKeys run_keys(const std::string& resolved_json) {
  const json resolved = json::parse(resolved_json, nullptr, /*allow_exceptions=*/false);
  const json stored = resolved.is_object() ? resolved.value("execution", json::object()) : json();
  grid::RunKeys keys;
  if (!stored.is_object()) return keys;
  keys.timeout_ns = stored.value("timeout_ns", keys.timeout_ns);
  keys.step_timeout_ns = stored.value("step_timeout_ns", keys.step_timeout_ns);
  keys.retries = stored.value("retries", keys.retries);
  keys.devices = stored.value("devices", keys.devices);
  keys.timed = stored.value("timed", keys.timed);
  if (stored.contains("memory_limit_bytes")) {
    keys.memory_limit_bytes = stored["memory_limit_bytes"].get<int64_t>();
  }
  return keys;
}

StudyRun study_run_at(const store::Table& table, size_t i) {
  const auto number = [&](const char* name) { return *store::integer(table.at(i, name)); };
  const auto text = [&](const char* name) { return *store::text(table.at(i, name)); };
  return {.run = {.run_id = number("run_id"),
                  .cell_id = text("cell_id"),
                  .slug = text("slug"),
                  .config_json = text("config_json"),
                  .purpose = text("purpose"),
                  .ordinal = number("ordinal"),
                  .slot = number("slot"),
                  .attempts = number("attempts"),
                  .block = number("block")},
          .state = text("state"),
          .binaries_json = text("binaries_json")};
}

namespace {

/// Runs by what follows "FROM"; it names runs r, study_cells s and cells c.
std::vector<StudyRun> runs_from(const store::Reader& reader, const std::string& from,
                                const std::vector<store::Value>& values) {
  const auto table = reader.query(
      "SELECT r.run_id, r.cell_id, r.slot, r.state, r.purpose, r.block, s.ordinal, s.slug,"
      " c.config_json, c.binaries_json, (SELECT count(*) FROM attempts a WHERE a.run_id=r.run_id)"
      " AS attempts FROM " +
          from,
      values);
  std::vector<StudyRun> runs;
  for (size_t i = 0; i < table.rows.size(); ++i) runs.push_back(study_run_at(table, i));
  return runs;
}

constexpr const char* kOfStudy =
    "study_cells s JOIN cells c USING(cell_id) JOIN runs r USING(cell_id)"
    " WHERE s.study_id=?1 AND r.machine_id=?2";

}  // namespace

std::vector<StudyRun> study_runs(const store::Reader& reader, int64_t study_id,
                                 const std::string& machine_id) {
  return runs_from(reader,
                   kOfStudy + std::string(" AND r.purpose='measure' AND r.block=0 AND r.slot <"
                                          " s.repeats ORDER BY r.slot, s.ordinal"),
                   {store::Value(study_id), store::Value(machine_id)});
}

std::vector<StudyRun> envelope_runs(const store::Reader& reader, int64_t study_id,
                                    const std::string& machine_id) {
  return runs_from(reader,
                   kOfStudy + std::string(" AND r.purpose='envelope' AND EXISTS(SELECT 1 FROM"
                                          " comparisons p WHERE p.study_id=?1 AND p.base_cell="
                                          "r.cell_id AND p.loss_tier='T1')"
                                          " ORDER BY s.ordinal, r.slot"),
                   {store::Value(study_id), store::Value(machine_id)});
}

std::vector<StudyRun> trial_runs(const store::Reader& reader, int64_t study_id,
                                 const std::string& machine_id) {
  return runs_from(reader,
                   kOfStudy + std::string(" AND r.purpose='tune' AND s.repeats=0 ORDER BY"
                                          " s.ordinal"),
                   {store::Value(study_id), store::Value(machine_id)});
}

std::vector<StudyRun> named_runs(const store::Reader& reader, int64_t study_id,
                                 std::span<const int64_t> run_ids) {
  const json ids(std::vector<int64_t>(run_ids.begin(), run_ids.end()));
  return runs_from(reader,
                   "json_each(?2) j JOIN runs r ON r.run_id=j.value JOIN study_cells s ON"
                   " s.cell_id=r.cell_id AND s.study_id=?1 JOIN cells c ON c.cell_id=r.cell_id"
                   " ORDER BY j.key",
                   {store::Value(study_id), store::Value(ids.dump())});
}

std::vector<UsedPlugin> used_plugins(const store::Reader& reader,
                                     const std::string& binaries_json) {
  const json files = json::parse(binaries_json).value("plugins", json::object());
  std::vector<UsedPlugin> plugins;
  for (const auto& [name, sha256] : files.items()) {
    plugins.push_back(find_plugin(reader, name, sha256.get<std::string>()));
  }
  return plugins;
}

int world_of(const json& config) {
  int world = 1;
  const json mesh = config.value("mesh", json::object());
  for (const char* dim : {"dp_replicate", "dp_shard", "cp", "tp", "pp"}) {
    world *= mesh.value(dim, 1);
  }
  return world;
}

}  // namespace assay::host
