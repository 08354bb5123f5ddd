// Plan: what a study becomes: resolved cells with their ids, and what was left out and why.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/base/section_error.h"

namespace assay::grid {

class Components;

/// The executables of a run other than plugins; each part is hashed into every cell_id.
struct Binaries {
  std::string libassay;  ///< SHA-256 of libassay.so
  std::string libtorch;  ///< version
  std::string worker;    ///< SHA-256 of assay-worker
};

/// The machine as rules see it.
struct Machine {
  int devices = 1;                   ///< physical cores (a CPU device is one)
  std::set<std::string> properties;  ///< words of the capability vocabulary: device.cpu, cpu.avx2
};

/// `tune: {key: optim.lr, factors: [0.25, 0.5, 1, 2, 4], steps: 200, seeds: [101]}`.
struct Tune {
  std::string key = "optim.lr";
  std::vector<double> factors = {0.25, 0.5, 1, 2, 4};  ///< ascending, of the recipe's own value
  int64_t steps = 0;
  std::vector<int64_t> seeds = {101};
  std::string score = "final_val_loss";  ///< of a trial: the least mean over seeds wins
};

/// What a trial changes in each cell, after everything else.
struct Trial {
  double factor = 1;
  int64_t steps = 0, seed = 0;
};

struct PlanRequest {
  std::filesystem::path file;
  std::vector<std::string> sets;  ///< "key=value" of the command line
  std::string filter;             ///< an expression, empty: everything
  int64_t max_cells = 100'000;
  bool origins = false;  ///< keep for each cell where each value came from (--show)
  Machine machine;
  Binaries binaries;
  /// Called once, with the folders that the study's `plugins:` names.
  std::function<const Components&(const std::vector<std::filesystem::path>&)> components;
  /// What is wrong with `gate:`, which others than the grid read; none: it is not checked.
  std::function<std::vector<SectionError>(const nlohmann::json&)> check_gate;
  /// Plans the cells of a trial instead of the study's own.
  std::optional<Trial> trial{};
  std::map<std::string, double> tuned{};  ///< values that tuning chose, by Cell::arm
  /// SHA-256 of a plugin file or of the content of a path option.
  std::function<std::string(const std::filesystem::path&)> hash_file;
};

struct AxisValue {
  std::string key{};         ///< "memory.name", or the name of a variants axis
  std::string label{};       ///< as tables show it
  std::string value_json{};  ///< what was set: a scalar, or a map for variants
};

struct Origin {
  std::string key{};
  std::string value_json{};
  std::string place{};  ///< "layouts.yaml:4:7", "command line", "default", "derived"
};

struct Cell {
  int ordinal = 0;            ///< from 0, in grid order
  std::string slug;           ///< unique in the plan, [a-z0-9.~_-]
  std::string arm;            ///< the slug without the seed: the recipe's name
  std::string config_json;    ///< canonical, paths as text
  std::string cell_id;        ///< 64 hex digits each, evidence.md 1.3
  std::string recipe_id;      ///< without nuisance keys
  std::string config_id;      ///< without binaries
  std::string binaries_json;  ///< canonical
  std::string data_fingerprint;
  std::vector<AxisValue> axes;
  std::vector<std::string> plugin_files;  ///< absolute, of the used components, sorted
  int world = 1;
  std::vector<std::string> notes;
  std::vector<Origin> origins;

  nlohmann::json config() const { return nlohmann::json::parse(config_json); }
  std::string folder() const { return slug + "--" + cell_id.substr(0, 12); }
};

struct Skip {
  std::string slug{};
  std::optional<int> line{};
  std::string rule{};  ///< exclude, when, duplicate, refused, predicted_oom, filter
  std::optional<std::string> rule_id{};
  std::string reason{};
  std::string place{};  ///< "layouts.yaml:13:11"
  std::string twin{};   ///< of a duplicate: the slug of the first
};

/// Execution keys: part of no id.
struct RunKeys {
  int64_t timeout_ns = 1'800'000'000'000;
  int64_t step_timeout_ns = 600'000'000'000;
  int retries = 2;
  int devices = 1;
  std::optional<int64_t> memory_limit_bytes;
  bool timed = true;
};

/// How many cells each stage saw, in the order of the stages. All but `seeds` count grid points
/// before seeds multiply them until `duplicates`, which count cells.
struct PlanCounts {
  int64_t expanded = 0, included = 0, excluded = 0, by_when = 0;
  int64_t seeds = 1;
  int64_t duplicates = 0, refused = 0, filtered = 0;
};

struct Plan {
  std::string study;
  std::filesystem::path file;
  std::string yaml_text;      ///< of the study's own file
  std::string resolved_json;  ///< the study after extends, ${...} of the environment and --set
  std::vector<std::string> nuisance;
  std::vector<std::string> swept;  ///< axes in order
  int repeats = 1;
  RunKeys run;
  nlohmann::json compare, gate, report;  ///< checked and handed on, null when absent
  std::optional<Tune> tune;
  nlohmann::json places;  ///< where settings stand in the YAML (Places)
  PlanCounts counts;
  std::vector<Cell> cells;
  std::vector<Skip> skips;
  std::vector<Diagnostic> diagnostics;  ///< refusals (grouped), warnings and notes, in print order
};

/// Throws DiagnosticError with every error of the study, or with G18 when no cell is left.
/// Refused cells are skips of the plan.
Plan plan(const PlanRequest& request);

/// This machine: physical cores that this process may use, and what its processor can do.
Machine this_machine();

/// sha256_file, remembered in cache_dir() under size, mtime and inode; a folder is hashed by the
/// names and contents of its files.
std::string cached_file_hash(const std::filesystem::path& file);

/// Hashes of libassay and the worker beside the running executable; empty text when absent.
Binaries installed_binaries();

}  // namespace assay::grid
