// Rows of the database as plain structs: what the supervisor writes and what a reader gets back.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace assay::store {

using Text = std::optional<std::string>;  ///< nothing = NULL
using Int = std::optional<int64_t>;
using Real = std::optional<double>;

/// A machine with its software. Written once per env_id.
struct Env {
  std::string env_id{};  ///< 64 hex digits, a hash over the other fields
  std::string machine_id{};
  std::string host{};
  Text cpu_model{};
  Int cpu_count{}, ram_bytes{};
  Text device_model{};
  Int device_count{};
  Text driver{}, clock_policy{}, libtorch{}, compiler{}, build_type{}, sanitizer{};
  nlohmann::json facts = nlohmann::json::object();
};

struct Plugin {
  std::string name{}, kind{}, version{};
  int64_t abi = 0;
  std::string path{}, sha256{}, build_type{};
};

/// One swept key of a cell.
struct Axis {
  std::string key{};
  std::string label{};
  nlohmann::json value{};
};

/// A cell as the plan made it. Equal cell_id = equal content, shared between studies.
struct Cell {
  std::string cell_id{}, recipe_id{}, config_id{};  ///< 64 hex digits each
  std::string config_json{};                        ///< canonical text, whole
  nlohmann::json binaries = nlohmann::json::object();
  std::string data_fingerprint{};
  int64_t ordinal = 0;  ///< within the study
  std::string slug{};   ///< within the study
  int64_t repeats = 1;
  std::vector<Axis> axes{};
};

/// A point of the grid that became no cell.
struct Skip {
  std::string slug{};
  Int line{};
  std::string reason{};
  std::string rule{};  ///< exclude, when, duplicate, refused, predicted_oom, filter
  Text rule_id{};      ///< set exactly for `refused`: "R-TPHEADS"
};

struct Study {
  std::string name{};
  std::string yaml_sha256{}, yaml_text{};
  std::string resolved_json{};
  nlohmann::json nuisance = nlohmann::json::array();  ///< keys that make no recipe: "seed", ...
  std::vector<Cell> cells{};
  std::vector<Skip> skips{};
};

/// A supervisor process; alive iff boot_id, pid and pid_start all match a process.
struct Supervisor {
  int64_t supervisor_id = 0;  ///< ignored on insert
  Int study_id{};
  std::string env_id{};
  std::vector<std::string> argv{};
  std::string boot_id{};
  int64_t pid = 0, pid_start = 0;
  int64_t started_us = 0, heartbeat_us = 0;  ///< ignored on insert: now
};

/// A run that waits, in the order of execution: all cells once, then their second repeats.
struct QueuedRun {
  int64_t run_id = 0;
  std::string cell_id{}, slug{}, config_json{}, purpose{};
  int64_t ordinal = 0, slot = 0;
  int64_t attempts = 0;  ///< made so far
  int64_t block = 0;     ///< comparison_id of pairs and controls, else 0
};

/// What a claim needs to write its attempt row.
struct ClaimRequest {
  int64_t study_id = 0;
  std::string machine_id{};
  int64_t supervisor_id = 0;
  std::string env_id{};
  bool timed = true;
  Int run_id{};  ///< this run only; nothing = the next of the queue
  Int resumed_step{};
};

/// A claimed run: state running, attempt row written, spools expected.
struct Claim {
  QueuedRun run{};
  int64_t attempt_id = 0;
  int64_t n = 0;  ///< number of this attempt of the run, from 1
};

/// Filled in when the processes exist.
struct AttemptStart {
  Int pgid{}, pid{}, pid_start{};
  Text log_path{};
};

/// The latest sign of life.
struct AttemptProgress {
  Text last_phase{};
  Int last_step{}, last_bytes{};  ///< nothing = keep the stored one
};

/// How an attempt ended; `state` is also written to its run.
struct AttemptEnd {
  std::string state{};  ///< ok oom fail timeout killed infra invalid
  Int exit_code{}, signal{};
  Text reason{};  ///< one phrase: "out of memory in backward, step 1, rank 0"
  Text detail{};  ///< the whole message
  Text stderr_tail{};
  Text log_path{};
  Int log_bytes{};
  Text log_sha256{};
};

/// A component's binary in an attempt; `git` is its build stamp.
struct AttemptPlugin {
  int64_t plugin_id = 0;
  std::string role{};  ///< "optim/lion", "worker", "libassay"
  Text git{};
};

/// An attempt that a supervisor left `running`, with what is needed to judge and end it.
struct OpenAttempt {
  int64_t attempt_id = 0, run_id = 0, n = 0;
  std::string cell_id{}, slug{};
  Int pgid{}, pid{}, pid_start{};
  Text log_path{};
  Supervisor supervisor{};
};

/// How far a spool has been imported.
struct SpoolPosition {
  std::string path{};
  int64_t bytes_imported = 0;
  int64_t rows_imported = 0;  ///< without the close row
  Int rows_declared{};        ///< set by the close row
  bool complete() const { return rows_declared && *rows_declared == rows_imported; }
};

/// A figure of a run, over all ranks unless `rank` says otherwise.
struct Metric {
  std::string name{};
  int64_t rank = -1;
  Real value{};  ///< nothing = not measured: no row is written
  std::string unit{}, formula_id{};
};

}  // namespace assay::store
