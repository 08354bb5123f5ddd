// A small made-up study for tests of the store, evidence and reports: fixed ids, fixed numbers.
#pragma once

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "core/base/clock.h"
#include "core/store/store.h"

namespace assay::store {

/// A folder that is gone after the test.
class TempFolder {
 public:
  TempFolder() {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("assay-test-" + std::to_string(getpid()) + "-" + std::to_string(count++));
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string id64(char digit) { return std::string(64, digit); }
inline const std::string kMachine = "7c1e04";

inline Env sample_env() {
  return {.env_id = id64('e'),
          .machine_id = kMachine,
          .host = "bench1",
          .cpu_model = "Example CPU",
          .cpu_count = 2,
          .ram_bytes = int64_t{8} << 30,
          .libtorch = "2.11.0+cu130",
          .build_type = "Release"};
}

inline nlohmann::json sample_config(const std::string& precision, int64_t tp = 1) {
  return {
      {"model", {{"name", "llama3"}, {"flavour", "tiny"}, {"seq_len", 256}}},
      {"mesh", {{"dp_replicate", 1}, {"dp_shard", 1}, {"cp", 1}, {"tp", tp}, {"pp", 1}, {"ep", 1}}},
      {"precision", {{"name", precision}}},
      {"train", {{"steps", 40}, {"global_batch", 8}, {"warmup_steps", 5}}},
      {"seed", 1}};
}

inline Cell sample_cell(char id, int64_t ordinal, const std::string& precision, int64_t tp = 1) {
  Cell cell{.cell_id = id64(id), .recipe_id = id64(id), .config_id = id64(id)};
  cell.config_json = sample_config(precision, tp).dump();
  cell.data_fingerprint = id64('d');
  cell.ordinal = ordinal;
  cell.slug = precision + (tp > 1 ? "-tp" + std::to_string(tp) : "");
  cell.repeats = 2;
  cell.axes = {{"precision.name", precision, precision}, {"mesh.tp", std::to_string(tp), tp}};
  return cell;
}

/// bf16 (ordinal 0), float8 (1), float8-tp2 (2); one refused point. Two repeats each.
inline Study sample_study(const std::string& name = "layouts") {
  Study study{
      .name = name, .yaml_sha256 = id64('5'), .yaml_text = "assay: 1\nstudy: " + name + "\n"};
  study.resolved_json = R"({"study":")" + name + "\"}";
  study.nuisance = {"seed"};
  study.cells = {sample_cell('a', 0, "bf16"), sample_cell('b', 1, "float8"),
                 sample_cell('c', 2, "float8", 2)};
  study.skips = {{.slug = "float8-tp3",
                  .line = 9,
                  .reason = "2 heads do not divide by tp 3",
                  .rule = "refused",
                  .rule_id = "R-TPHEADS"}};
  return study;
}

/// Vector V9 of the design: seconds of train step k = 1..40, slower by `factor`.
inline double sample_step_s(int64_t k, double factor = 1) {
  return factor * (0.1 * (1 + 0.8 * std::exp(-static_cast<double>(k - 1) / 3)) +
                   0.0002 * static_cast<double>((7 * k) % 5 - 2));
}

inline nlohmann::json step_row(int64_t step, double factor = 1) {
  const double loss = 5.5 - 0.05 * static_cast<double>(step);
  return {{"t", "steps"},
          {"step", step},
          {"kind", step <= 5 ? "warmup" : "steady"},
          {"end_us", 1'700'000'000'000'000 + step * 200'000},
          {"wall_s", sample_step_s(step, factor)},
          {"tokens", 2048},
          {"tokens_total", 2048 * step},
          {"loss", loss},
          {"grad_norm", 1.0 / static_cast<double>(step)},
          {"lr", 3e-4},
          {"data_wait_s", 0.001},
          {"comm_exposed_s", 0.0}};
}

inline nlohmann::json open_row(int64_t attempt_id, int64_t rank = 0) {
  return {
      {"t", "open"}, {"schema", 1}, {"attempt_id", attempt_id}, {"rank", rank}, {"cell_id", "x"}};
}

/// All rows of one rank's spool: 40 train steps, one evaluation, memory, traffic, facts.
inline std::vector<nlohmann::json> spool_rows(int64_t attempt_id, int64_t rank = 0,
                                              double factor = 1) {
  std::vector<nlohmann::json> rows = {open_row(attempt_id, rank)};
  for (int64_t step = 1; step <= 40; ++step) rows.push_back(step_row(step, factor));
  nlohmann::json eval = step_row(40, factor);
  eval.update({{"kind", "eval"}, {"loss", 3.25}, {"grad_norm", nullptr}, {"lr", nullptr}});
  rows.push_back(eval);
  rows.push_back({{"t", "samples"}, {"name", "forward_s"}, {"step", 20}, {"value", 0.04}});
  rows.push_back(
      {{"t", "samples"}, {"name", "eval_bytes_per_token"}, {"step", 40}, {"value", 3.0}});
  rows.push_back({{"t", "memory"},
                  {"phase", "step"},
                  {"peak_allocated_bytes", int64_t{1} << 30},
                  {"peak_rss_bytes", int64_t{3} << 29}});
  rows.push_back({{"t", "memory_categories"},
                  {"phase", "step"},
                  {"category", "activations"},
                  {"bytes", 1 << 20}});
  rows.push_back({{"t", "collectives"},
                  {"grp", "tp"},
                  {"op", "all_reduce"},
                  {"dtype", "float32"},
                  {"phase", "backward"},
                  {"steps", 40},
                  {"count", 80},
                  {"payload_bytes", 4000},
                  {"wire_bytes", 4000}});
  rows.push_back({{"t", "facts"},
                  {"libtorch", "2.11.0"},
                  {"threads", 2},
                  {"parameter_checksum", id64('1')},
                  {"data", {{"bytes", 900}, {"tokens", 300}}}});
  const auto count = static_cast<int64_t>(rows.size());
  rows.push_back({{"t", "close"}, {"rows", count}, {"outcome", "ok"}});
  return rows;
}

/// A store with the sample study planned, a supervisor started and all runs queued.
struct SampleStore {
  explicit SampleStore(const std::filesystem::path& file) : store(file) {
    store.add_env(sample_env());
    study_id = store.add_study(sample_study());
    supervisor_id = store.start_supervisor({.study_id = study_id,
                                            .env_id = id64('e'),
                                            .argv = {"assay", "run", "layouts.yaml"},
                                            .boot_id = "boot",
                                            .pid = 1,
                                            .pid_start = 2});
    store.ensure_runs(study_id, kMachine);
  }

  std::optional<Claim> claim(Int run_id = {}) {
    return store.claim({.study_id = study_id,
                        .machine_id = kMachine,
                        .supervisor_id = supervisor_id,
                        .env_id = id64('e'),
                        .run_id = run_id});
  }

  /// Claims the next run and imports whole spools of `world` ranks.
  Claim claim_and_import(int64_t world = 1, double factor = 1) {
    Claim claimed = claim().value();
    for (int64_t rank = 0; rank < world; ++rank) {
      const auto rows = spool_rows(claimed.attempt_id, rank, factor);
      store.import_rows(claimed.attempt_id, rank, "spool", rows, 1000);
    }
    return claimed;
  }

  Store store;
  int64_t study_id = 0;
  int64_t supervisor_id = 0;
};

}  // namespace assay::store
