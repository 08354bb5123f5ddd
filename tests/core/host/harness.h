// A study of fake cells in a folder of its own, and supervisors over it.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/host/machine.h"
#include "core/host/supervisor.h"
#include "core/store/reader.h"
#include "core/store/store.h"

namespace assay::host {

inline constexpr int kSteps = 3;

/// A cell whose worker behaves as told.
inline store::Cell fake_cell(int ordinal, const nlohmann::json& fake, int world = 1,
                             const std::string& salt = {}) {
  const nlohmann::json config = {{"fake", fake.is_null() ? nlohmann::json::object() : fake},
                                 {"mesh", {{"dp_replicate", world}}},
                                 {"model", {{"seq_len", 8}}},
                                 {"train", {{"steps", kSteps}, {"global_batch", 2}}}};
  const std::string id = sha256(config.dump() + std::to_string(ordinal) + salt);
  return {.cell_id = id,
          .recipe_id = id,
          .config_id = id,
          .config_json = config.dump(),
          .data_fingerprint = id,
          .ordinal = ordinal,
          .slug = "cell-" + std::to_string(ordinal)};
}

/// Remembers everything that was said.
struct Listener : Observer {
  std::vector<RunView> ends{};
  std::vector<std::string> notes{};
  std::function<void(const RunView&)> on_started{}, on_progress{};
  int most_running = 0;

  void started(const RunView& run, const Totals& totals) override {
    most_running = std::max(most_running, static_cast<int>(totals.running));
    if (on_started) on_started(run);
  }
  void progressed(const RunView& run, const Totals&) override {
    if (on_progress) on_progress(run);
  }
  void ended(const RunView& run, const Totals&) override { ends.push_back(run); }
  void note(const std::string& text) override { notes.push_back(text); }
  std::string all_notes() const {
    std::string text;
    for (const std::string& note : notes) text += note + "\n";
    return text;
  }
};

class FakeStudy {
 public:
  explicit FakeStudy(std::vector<store::Cell> cells)
      : folder_(std::filesystem::temp_directory_path() /
                ("assay-host-" + std::to_string(getpid()) + "-" + std::to_string(count_++))),
        store_(std::in_place, (std::filesystem::create_directories(folder_), database())) {
    setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);  // device locks of its own
    study_id_ = store_->add_study({.name = "fake",
                                   .yaml_sha256 = std::string(64, '5'),
                                   .resolved_json = "{}",
                                   .cells = std::move(cells)});
    options_.study_id = study_id_;
    options_.worker = std::filesystem::path(ASSAY_BIN) / "fake_worker";
    options_.keys.timed = false;
    options_.keys.devices = 2;
    options_.patience.retry_delays = {std::chrono::milliseconds(1)};
    options_.patience.stop_grace = std::chrono::milliseconds(200);
    options_.patience.peer_grace = std::chrono::milliseconds(100);
  }
  ~FakeStudy() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  FakeStudy(const FakeStudy&) = delete;
  FakeStudy& operator=(const FakeStudy&) = delete;

  SupervisorResult run() { return Supervisor(*store_, options_, listener_).run(); }

  store::Table query(const std::string& sql) const {
    return store::Reader(database()).query(sql, {});
  }
  int64_t count(const std::string& sql) const {
    return store::integer(query(sql).rows.at(0).at(0)).value();
  }
  /// State of the newest attempt of a cell.
  std::string state(int ordinal) const { return attempt(ordinal, "state"); }
  std::string attempt(int ordinal, const std::string& column) const {
    const auto table = query("SELECT a." + column +
                             " AS x FROM attempts a JOIN runs r USING(run_id)"
                             " JOIN study_cells s USING(cell_id) WHERE s.ordinal=" +
                             std::to_string(ordinal) + " ORDER BY a.n DESC LIMIT 1");
    if (table.empty()) return "none";
    const auto& value = table.at(0, "x");
    if (const auto number = store::integer(value)) return std::to_string(*number);
    return store::text(value).value_or("null");
  }

  SupervisorOptions& options() { return options_; }
  Listener& listener() { return listener_; }
  store::Store& store() { return *store_; }
  /// Before a fork: SQLite's connections must not cross one.
  void close_store() { store_.reset(); }
  std::filesystem::path database() const { return folder_ / "assay.db"; }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  static inline int count_ = 0;
  const std::filesystem::path folder_;
  std::optional<store::Store> store_;
  int64_t study_id_ = 0;
  SupervisorOptions options_{};
  Listener listener_{};
};

}  // namespace assay::host
