// Reading a run back, and making one like it.
#include "core/host/replay.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

#include "assay/error.h"
#include "core/base/files.h"
#include "core/grid/identity.h"
#include "core/host/study.h"
#include "core/plugin/catalogue.h"

namespace assay::host {
namespace {

using nlohmann::json;
using store::integer;
using store::Table;
using store::text;
using store::Value;
namespace fs = std::filesystem;

constexpr const char* kChanged = "H08";
constexpr const char* kGone = "H09";
constexpr const char* kContent = "H10";
constexpr const char* kPurpose = "replay";
constexpr const char* kSuffix = "-replay";  // of the study that holds other binaries
constexpr size_t kShownDigits = 12;

std::string shown(const std::string& hash) { return hash.substr(0, kShownDigits); }
std::string place_of(int64_t run_id) { return "run " + std::to_string(run_id); }

Replay read_run(const store::Reader& reader, int64_t run_id) {
  const Table row = reader.query(
      "SELECT r.state, c.*, s.study_id, s.slug, t.name, t.resolved_json, t.nuisance_json, (SELECT"
      " reason FROM attempts a WHERE a.run_id=r.run_id ORDER BY n DESC LIMIT 1) reason FROM runs r"
      " JOIN cells c USING(cell_id) JOIN study_cells s USING(cell_id) JOIN studies t "
      "USING(study_id)"
      " WHERE r.run_id=?1 ORDER BY s.study_id DESC LIMIT 1",
      {Value(run_id)});
  if (row.empty()) {
    throw Error("there is no run " + std::to_string(run_id) + " of a study in '" +
                    reader.file().string() + "'",
                "assay sql \"SELECT run_id, state FROM runs\" lists them");
  }
  const auto word = [&](const char* name) { return text(row.at(0, name)).value_or(""); };
  return {.run_id = run_id,
          .state = word("state"),
          .reason = word("reason"),
          .study = {.study_id = *integer(row.at(0, "study_id")),
                    .name = word("name"),
                    .yaml_sha256 = {},
                    .resolved_json = word("resolved_json"),
                    .nuisance_json = word("nuisance_json")},
          .cell = {.cell_id = word("cell_id"),
                   .recipe_id = word("recipe_id"),
                   .config_id = word("config_id"),
                   .config_json = word("config_json"),
                   .binaries = json::parse(word("binaries_json")),
                   .data_fingerprint = word("data_fingerprint"),
                   .slug = word("slug")}};
}

/// Texts of the configuration that name a file: the content stands for them in every id.
void replace_paths(json& node, std::vector<std::string>& missing) {
  for (json& value : node) {
    if (value.is_structured()) {
      replace_paths(value, missing);
    } else if (value.is_string()) {
      const auto path = value.get<std::string>();
      if (!fs::path(path).is_absolute()) continue;
      if (fs::exists(path)) {
        value = grid::cached_file_hash(path);
      } else {
        missing.push_back(path);
      }
    }
  }
}

void erase_key(json& config, const std::string& dotted) {
  std::string pointer = "/" + dotted;
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  const json::json_pointer at(pointer);
  if (config.contains(at)) config.at(at.parent_pointer()).erase(at.back());
}

/// Ids of the replay's cell with these binaries; configuration and data as they are now.
grid::Ids ids_with(const Replay& replay, const json& binaries, std::vector<std::string>& missing) {
  json config = json::parse(replay.cell.config_json);
  replace_paths(config, missing);
  json recipe = config;
  for (const json& key : json::parse(replay.study.nuisance_json)) erase_key(recipe, key);
  return grid::ids_of(binaries.dump(), config.dump(), recipe.dump(), replay.cell.data_fingerprint);
}

/// A run that ended, from step 0: the database does not hold what another one started from.
void require_repeatable(const store::Reader& reader, const Replay& replay) {
  const std::string run = place_of(replay.run_id);
  if (replay.state == "queued" || replay.state == "running") {
    throw Error(run + " is " + replay.state + ": there is nothing to repeat",
                "assay resume " + replay.study.name);
  }
  const Table row =
      reader.query("SELECT resumed_step FROM attempts WHERE run_id=?1 ORDER BY n DESC LIMIT 1",
                   {Value(replay.run_id)});
  const auto step = row.empty() ? std::nullopt : integer(row.at(0, "resumed_step"));
  if (!step) return;
  throw Error(run + " started from a checkpoint at step " + std::to_string(*step) +
                  ", which the database does not hold",
              "replay a run of the cell that started at step 0");
}

void require_contents(const Replay& replay) {
  std::vector<std::string> missing;
  if (ids_with(replay, replay.cell.binaries, missing).config_id == replay.cell.config_id) return;
  Diagnostic refusal{
      .id = kContent,
      .place = place_of(replay.run_id),
      .text =
          "a file that its configuration names is no longer what it was: the "
          "configuration has another id with it",
      .hints = {"put the file back, or run the study file again: it plans a new cell"}};
  for (const std::string& path : missing) refusal.details.push_back("gone: " + path);
  throw DiagnosticError(std::move(refusal));
}

/// Where a plugin's file is now: as recorded, changed in place, or elsewhere under its name.
struct Located {
  fs::path file{};
  std::string sha256{};
  std::string recorded{};  ///< the newest recorded path
};

/// The plugins of the folders, read when the first is looked for: most lie where they were.
class Folders {
 public:
  explicit Folders(const std::vector<fs::path>& folders) : folders_(folders) {}
  const Catalogue& catalogue() {
    if (!catalogue_) catalogue_ = Catalogue::load(folders_, nullptr);
    return *catalogue_;
  }

 private:
  const std::vector<fs::path>& folders_;
  std::optional<Catalogue> catalogue_{};
};

Located locate(const store::Reader& reader, const std::string& name, const std::string& sha256,
               Folders& folders) {
  const Table rows = reader.query(
      "SELECT path FROM plugins WHERE sha256=?1 ORDER BY plugin_id DESC", {Value(sha256)});
  Located changed;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    const std::string path = *text(rows.at(i, "path"));
    if (changed.recorded.empty()) changed.recorded = path;
    if (!fs::exists(path)) continue;
    const std::string hash = grid::cached_file_hash(path);
    if (hash == sha256) return {.file = path, .sha256 = hash, .recorded = path};
    if (!changed.file.empty()) continue;
    changed.file = path;
    changed.sha256 = hash;
  }
  for (const auto& file : folders.catalogue().files()) {
    if (!file->accepted() || !file->note || file->note->plugin != name) continue;
    if (file->sha256 == sha256 || changed.file.empty()) {
      changed.file = file->path;
      changed.sha256 = file->sha256;
    }
  }
  return changed;
}

void compare_plugins(const store::Reader& reader, const Installed& installed, Replay& replay) {
  const json then = replay.cell.binaries.value("plugins", json::object());
  Folders folders(installed.plugin_folders);
  for (const auto& [name, hash] : then.items()) {
    const auto recorded = hash.get<std::string>();
    const Located now = locate(reader, name, recorded, folders);
    replay.binaries["plugins"][name] = now.sha256;
    if (now.sha256 == recorded) {
      if (now.file != now.recorded) replay.new_files.push_back(now.file);
      continue;
    }
    replay.changed.push_back({Changed::What::plugin, "plugin " + name, recorded, now.sha256});
    const bool gone = now.file.empty();
    if (!gone) replay.new_files.push_back(now.file);
    Diagnostic refusal{
        .id = gone ? kGone : kChanged,
        .place = place_of(replay.run_id),
        .text = "plugin '" + name + "' is " + (gone ? "gone" : "not the one that ran")};
    refusal.details = {"then: " + shown(recorded) + "  " + now.recorded};
    if (!gone) refusal.details.push_back("now:  " + shown(now.sha256) + "  " + now.file.string());
    refusal.hints = {gone ? "build it again, or name its folder: --plugin-path DIR"
                          : "put the file back, or replay with the new one: --accept-binaries"};
    replay.refusals.push_back(std::move(refusal));
  }
}

void compare_hosts(const Installed& installed, Replay& replay) {
  using What = Changed::What;
  const std::array<std::tuple<What, const char*, std::string>, 3> files = {{
      {What::libassay, "libassay", installed.binaries.libassay},
      {What::worker, "worker", installed.binaries.worker},
      {What::libtorch, "libtorch", installed.binaries.libtorch},
  }};
  for (const auto& [what, name, now] : files) {
    if (!replay.cell.binaries.contains(name)) continue;
    const auto then = replay.cell.binaries.at(name).get<std::string>();
    replay.binaries[name] = now;
    if (then != now) replay.changed.push_back({what, name, then, now});
  }
}

std::string printed(const Value& value) {
  if (const auto number = integer(value)) return std::to_string(*number);
  return text(value).value_or("");
}
std::string printed(const store::Text& value) { return value.value_or(""); }
std::string printed(const store::Int& value) { return value ? std::to_string(*value) : ""; }

void compare_machines(const store::Reader& reader, const store::Env& now, Replay& replay) {
  const Table row = reader.query(
      "SELECT e.* FROM env e JOIN attempts a USING(env_id) WHERE a.run_id=?1 ORDER BY a.n DESC"
      " LIMIT 1",
      {Value(replay.run_id)});
  if (row.empty()) return;
  const std::array<std::pair<const char*, std::string>, 10> fields = {{
      {"host", now.host},
      {"cpu_model", printed(now.cpu_model)},
      {"cpu_count", printed(now.cpu_count)},
      {"ram_bytes", printed(now.ram_bytes)},
      {"device_model", printed(now.device_model)},
      {"driver", printed(now.driver)},
      {"clock_policy", printed(now.clock_policy)},
      {"compiler", printed(now.compiler)},
      {"build_type", printed(now.build_type)},
      {"sanitizer", printed(now.sanitizer)},
  }};
  for (const auto& [name, value] : fields) {
    const std::string then = printed(row.at(0, name));
    if (then != value) replay.changed.push_back({Changed::What::machine, name, then, value});
  }
  const json facts = json::parse(printed(row.at(0, "facts_json")));
  for (const auto& [name, then] : facts.items()) {
    const json value = now.facts.value(name, json());
    if (value == then) continue;
    const auto word = [](const json& v) { return v.is_string() ? v.get<std::string>() : v.dump(); };
    replay.changed.push_back({Changed::What::machine, name, word(then), word(value)});
  }
}

/// A replay that was stopped is taken up again; else the next free slot.
int64_t free_slot(const store::Store& store, const std::string& cell_id,
                  const std::string& machine_id) {
  const Table open = store.query(
      "SELECT slot FROM runs WHERE cell_id=?1 AND machine_id=?2 AND purpose=?3 AND block=0 AND"
      " state IN('queued','killed','infra') ORDER BY slot LIMIT 1",
      {Value(cell_id), Value(machine_id), Value(kPurpose)});
  if (!open.empty()) return *integer(open.at(0, "slot"));
  const Table next = store.query(
      "SELECT coalesce(max(slot) + 1, 0) slot FROM runs WHERE cell_id=?1 AND machine_id=?2 AND"
      " purpose=?3 AND block=0",
      {Value(cell_id), Value(machine_id), Value(kPurpose)});
  return *integer(next.at(0, "slot"));
}

/// Study and cell of a replay with other binaries.
int64_t add_cell(store::Store& store, const Replay& replay, const std::string& study,
                 store::Cell& cell) {
  std::vector<std::string> missing;
  const grid::Ids ids = ids_with(replay, replay.binaries, missing);
  cell.cell_id = ids.cell_id;
  cell.recipe_id = ids.recipe_id;
  cell.binaries = replay.binaries;
  return store.add_study({.name = study,
                          .yaml_sha256 = sha256(study + "\n" + ids.cell_id),
                          .resolved_json = replay.study.resolved_json,
                          .nuisance = json::parse(replay.study.nuisance_json),
                          .cells = {cell}});
}

}  // namespace

Replay plan_replay(const store::Reader& reader, int64_t run_id, const Installed& installed) {
  Replay replay = read_run(reader, run_id);
  require_repeatable(reader, replay);
  require_contents(replay);
  replay.binaries = replay.cell.binaries;
  compare_plugins(reader, installed, replay);
  compare_hosts(installed, replay);
  compare_machines(reader, installed.env, replay);
  return replay;
}

std::vector<Diagnostic> standing(const Replay& replay, bool accept_binaries) {
  std::vector<Diagnostic> stand;
  for (const Diagnostic& refusal : replay.refusals) {
    if (!accept_binaries || refusal.id == kGone) stand.push_back(refusal);
  }
  return stand;
}

evidence::TierChoice replay_tier(const Replay& replay) {
  evidence::TierChoice choice{.tier = evidence::Tier::t0};
  for (const Changed& c : replay.changed) {
    const bool hardware = c.name == "cpu_model" || c.name == "device_model" || c.name == "driver";
    if (c.what != Changed::What::libtorch && !hardware) continue;
    choice.tier = evidence::Tier::t1;
    choice.evidence.push_back(c.name + ": " + c.then + " -> " + c.now +
                              ": other kernels, another order of sums (T1)");
  }
  if (choice.evidence.empty()) {
    choice.evidence.push_back("the same configuration, LibTorch and hardware (T0)");
  }
  return choice;
}

QueuedReplay queue_replay(store::Store& store, const Replay& replay, const Installed& installed) {
  store.add_env(installed.env);
  for (const fs::path& file : replay.new_files) store_plugin(store, file);
  QueuedReplay queued{.study_id = replay.study.study_id, .study = replay.study.name};
  store::Cell cell = replay.cell;
  if (!replay.same_binaries()) {
    if (!queued.study.ends_with(kSuffix)) queued.study += kSuffix;
    queued.study_id = add_cell(store, replay, queued.study, cell);
  }
  const std::string& machine = installed.env.machine_id;
  queued.run_id =
      store.ensure_run(cell.cell_id, machine, kPurpose, 0, free_slot(store, cell.cell_id, machine));
  return queued;
}

}  // namespace assay::host
