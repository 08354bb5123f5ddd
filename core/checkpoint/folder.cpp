// Every change of what a reader may find is one rename.
#include "core/checkpoint/folder.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "assay/error.h"
#include "core/base/files.h"
#include "core/checkpoint/file.h"

namespace assay::checkpoint {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kSavingPrefix = ".saving-";  // not whole yet
constexpr std::string_view kOldPrefix = ".old-";        // on its way out
constexpr const char* kLatest = "latest";

std::optional<int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  name.remove_prefix(kStepPrefix.size());
  int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return step;
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing)) found.push_back(entry.path());
  return found;
}

bool is_checkpoint(const fs::path& folder) { return fs::exists(folder / kManifestName); }

/// A stale `latest` (its checkpoint was deleted by hand) counts as none.
std::optional<fs::path> latest(const fs::path& folder) {
  if (fs::exists(folder / kLatest)) {
    std::string name = read_file(folder / kLatest);
    name.erase(name.find_last_not_of('\n') + 1);
    if (step_of(name) && is_checkpoint(folder / name)) return folder / name;
  }
  const auto saved = saved_steps(folder);
  return saved.empty() ? std::nullopt : std::optional(saved.back().folder);
}

[[noreturn]] void fail(const fs::path& from, const fs::path& to) {
  throw InfrastructureError(from.string() + ": cannot become '" + to.string() +
                            "': " + std::strerror(errno));
}

/// Atomic also where `to` exists: then the two swap, and the old one is removed.
void replace_folder(const fs::path& from, const fs::path& to) {
  if (!fs::exists(to)) {
    if (::rename(from.c_str(), to.c_str()) != 0) fail(from, to);
    return;
  }
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) != 0) {
    fail(from, to);
  }
  fs::remove_all(from);
}

void point_latest(const fs::path& folder, const std::string& name) {
  try {
    write_file_atomically(folder / kLatest, name + "\n");
  } catch (const Error& error) {
    throw InfrastructureError(error.what());
  }
}

std::string steps_text(const std::vector<SavedStep>& saved) {
  std::string text;
  for (const SavedStep& s : saved) text += (text.empty() ? "" : ", ") + std::to_string(s.step);
  return text;
}

}  // namespace

std::string step_name(int64_t step) {
  std::string digits = std::to_string(step);
  constexpr size_t kDigits = 8;
  if (digits.size() < kDigits) digits.insert(0, kDigits - digits.size(), '0');
  return std::string(kStepPrefix) + digits;
}

fs::path temporary_folder(const fs::path& folder, int64_t step) {
  return folder / (std::string(kSavingPrefix) + step_name(step));
}

std::vector<SavedStep> saved_steps(const fs::path& folder) {
  std::vector<SavedStep> saved;
  for (const fs::path& entry : entries(folder)) {
    const auto step = step_of(entry.filename().string());
    if (step && is_checkpoint(entry)) saved.push_back({*step, entry});
  }
  std::ranges::sort(saved, {}, &SavedStep::step);
  return saved;
}

fs::path find_checkpoint(const fs::path& path, std::optional<int64_t> step) {
  if (is_checkpoint(path) && !step) return path;
  std::vector<SavedStep> seen;
  for (const fs::path& folder : {path, path / kFolderName}) {
    seen = saved_steps(folder);
    if (seen.empty()) continue;
    if (!step) return *latest(folder);
    const auto found = std::ranges::find(seen, *step, &SavedStep::step);
    if (found != seen.end()) return found->folder;
    break;
  }
  if (!seen.empty()) {
    throw Error("there is no checkpoint of step " + std::to_string(*step) + " in '" +
                path.string() + "'; steps: " + steps_text(seen));
  }
  throw Error("there is no checkpoint in '" + path.string() + "'",
              "name a folder with a manifest.json, or one of its parents: a run writes "
              "checkpoints/ below its own folder when train.checkpoint_every is set");
}

void commit(const fs::path& folder, const Manifest& manifest) {
  const fs::path temporary = temporary_folder(folder, manifest.step);
  const std::string name = step_name(manifest.step);
  write_synced(temporary / kManifestName, print(manifest));
  sync_folder(temporary);
  replace_folder(temporary, folder / name);
  sync_folder(folder);
  point_latest(folder, name);
}

void keep_newest(const fs::path& folder, int64_t keep) {
  std::vector<SavedStep> saved = saved_steps(folder);
  if (keep <= 0) return;
  for (size_t i = 0; i + static_cast<size_t>(keep) < saved.size(); ++i) {
    const fs::path old = folder / (std::string(kOldPrefix) + step_name(saved[i].step));
    std::error_code ignored;  // what stays is removed with the next leftovers
    fs::rename(saved[i].folder, old, ignored);
    fs::remove_all(old, ignored);
  }
}

void remove_leftovers(const fs::path& folder) {
  for (const fs::path& entry : entries(folder)) {
    const std::string name = entry.filename().string();
    if (name.starts_with(kSavingPrefix) || name.starts_with(kOldPrefix)) fs::remove_all(entry);
  }
}

}  // namespace assay::checkpoint
