// Planning from the database, then deleting exactly what was planned.
#include "core/store/retention.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "assay/error.h"

namespace assay::store {
namespace {

namespace fs = std::filesystem;

/// What a supervisor leaves in an attempt's folder beside logs and spools.
constexpr const char* kLeftovers[] = {"cell.json", "processes.json", "rendezvous"};

struct AttemptFolder {
  int64_t run_id = 0, ended_us = 0;
  bool running = false, baseline = false;
  std::map<fs::path, int64_t> spools{};  ///< absolute path -> bytes imported
};

int64_t size_of(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_regular_file(fs::symlink_status(path, ignored))) {
    return static_cast<int64_t>(fs::file_size(path, ignored));
  }
  int64_t bytes = 0;
  for (auto i = fs::recursive_directory_iterator(path, ignored);
       i != fs::recursive_directory_iterator(); i.increment(ignored)) {
    if (i->is_regular_file(ignored)) bytes += static_cast<int64_t>(i->file_size(ignored));
  }
  return bytes;
}

bool inside(const fs::path& path, const fs::path& folder) {
  const fs::path relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

/// Attempts by folder; those without a log or spool have none.
std::map<fs::path, AttemptFolder> known_folders(const Reader& reader) {
  std::map<fs::path, AttemptFolder> folders;
  const Table rows = reader.query(
      "SELECT a.run_id, a.state, coalesce(a.ended_us, 0) ended_us, p.path, p.bytes,"
      " EXISTS(SELECT 1 FROM baselines b WHERE b.run_id=a.run_id) baseline FROM attempts a JOIN"
      " (SELECT attempt_id, log_path path, NULL bytes FROM attempts WHERE log_path IS NOT NULL"
      "  UNION ALL SELECT attempt_id, path, bytes_imported FROM spool_files) p USING(attempt_id)");
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    const fs::path file = fs::absolute(*text(rows.at(i, "path"))).lexically_normal();
    AttemptFolder& folder = folders[file.parent_path()];
    folder.run_id = *integer(rows.at(i, "run_id"));
    folder.ended_us = std::max(folder.ended_us, *integer(rows.at(i, "ended_us")));
    folder.running = folder.running || text(rows.at(i, "state")) == "running";
    folder.baseline = folder.baseline || integer(rows.at(i, "baseline")) == 1;
    if (const auto bytes = integer(rows.at(i, "bytes"))) folder.spools[file] = *bytes;
  }
  return folders;
}

std::optional<Keepsake> kind_of(const fs::directory_entry& entry) {
  std::error_code ignored;
  const std::string name = entry.path().filename().string();
  if (entry.is_symlink(ignored)) return std::nullopt;
  if (entry.is_directory(ignored)) {
    if (name.starts_with("checkpoint")) return Keepsake::checkpoints;
    return std::nullopt;
  }
  if (name.ends_with(".jl")) return Keepsake::spools;
  if (name.ends_with(".log")) return Keepsake::logs;
  return std::nullopt;
}

/// Why a file of an attempt stays; empty if it may go.
std::string reason_to_keep(const AttemptFolder& folder, Keepsake kind, const fs::path& file,
                           int64_t bytes) {
  if (folder.running) return "its attempt is running";
  if (folder.baseline) return "a baseline names its run";
  if (kind != Keepsake::spools) return "";
  const auto spool = folder.spools.find(file);
  if (spool == folder.spools.end()) return "it was never imported";
  if (spool->second >= bytes) return "";
  return std::to_string(bytes - spool->second) + " bytes of it are not imported";
}

void plan_folder(const fs::path& path, const AttemptFolder& folder, const RetentionPolicy& policy,
                 int64_t before_us, RetentionPlan& plan) {
  std::error_code gone;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, gone)) {
    const auto kind = kind_of(entry);
    if (!kind || !policy.kinds.contains(*kind)) continue;
    if (!folder.running && folder.ended_us > before_us) continue;  // too young
    const int64_t bytes = size_of(entry.path());
    const std::string reason = reason_to_keep(folder, *kind, entry.path(), bytes);
    if (reason.empty())
      plan.disposable.push_back({*kind, entry.path(), bytes, folder.run_id});
    else
      plan.kept.push_back(entry.path().string() + ": " + reason);
  }
}

int64_t changed_us(const fs::path& file) {
  std::error_code error;
  const auto time = fs::last_write_time(file, error);
  if (error) return INT64_MAX;
  const auto since = std::chrono::file_clock::to_sys(time).time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(since).count();
}

void plan_caches(const fs::path& caches, int64_t before_us, RetentionPlan& plan) {
  std::error_code ignored;
  for (auto i = fs::recursive_directory_iterator(caches, ignored);
       i != fs::recursive_directory_iterator(); i.increment(ignored)) {
    if (!i->is_regular_file(ignored) || i->is_symlink(ignored)) continue;
    if (changed_us(i->path()) > before_us) continue;
    plan.disposable.push_back({Keepsake::caches, i->path(), size_of(i->path()), 0});
  }
}

void remove_leftovers(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const bool leftover = std::any_of(std::begin(kLeftovers), std::end(kLeftovers),
                                      [&](const char* known) { return name == known; });
    if (!leftover) return;
  }
  for (const char* name : kLeftovers) fs::remove_all(folder / name, error);
  if (fs::remove(folder, error)) fs::remove(folder.parent_path(), error);  // only if empty
}

}  // namespace

const char* name_of(Keepsake kind) {
  switch (kind) {
    case Keepsake::spools:
      return "spools";
    case Keepsake::logs:
      return "logs";
    case Keepsake::checkpoints:
      return "checkpoints";
    case Keepsake::caches:
      return "caches";
  }
  return "";
}

RetentionPlan plan_retention(const Reader& reader, const fs::path& runs, const fs::path& caches,
                             const RetentionPolicy& policy, int64_t now_us) {
  RetentionPlan plan;
  const int64_t before_us = now_us - policy.older_us;
  const fs::path own = fs::absolute(runs).lexically_normal();
  for (const auto& [path, folder] : known_folders(reader)) {
    if (inside(path, own)) plan_folder(path, folder, policy, before_us, plan);
  }
  if (policy.kinds.contains(Keepsake::caches)) plan_caches(caches, before_us, plan);
  std::sort(plan.disposable.begin(), plan.disposable.end(),
            [](const Disposable& a, const Disposable& b) {
              return a.kind != b.kind ? a.kind < b.kind : a.path < b.path;
            });
  for (const Disposable& item : plan.disposable) plan.bytes += item.bytes;
  return plan;
}

int64_t delete_all(const RetentionPlan& plan) {
  int64_t freed = 0;
  std::set<fs::path> folders;
  for (const Disposable& item : plan.disposable) {
    std::error_code error;
    const auto removed = fs::remove_all(item.path, error);
    if (error) {
      throw InfrastructureError("cannot delete '" + item.path.string() + "': " + error.message(),
                                "what was deleted before it is gone; run it again after the fix");
    }
    if (removed > 0) freed += item.bytes;
    if (item.kind != Keepsake::caches) folders.insert(item.path.parent_path());
  }
  for (const fs::path& folder : folders) remove_leftovers(folder);
  return freed;
}

}  // namespace assay::store
