// Search order and judgement of plugin files.
#include "core/plugin/discovery.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>

#include "core/base/files.h"
#include "core/plugin/handshake.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".assay.so";

std::vector<fs::path> plugins_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().ends_with(kSuffix)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::string place_of(const fs::path& file) {
  const fs::path absolute = fs::absolute(file).lexically_normal();
  const fs::path relative = absolute.lexically_relative(fs::current_path());
  return relative.empty() || *relative.begin() == ".." ? absolute.string() : relative.string();
}

PluginFile judge(const fs::path& file) {
  PluginFile result;
  result.path = fs::absolute(file).lexically_normal();
  result.place = place_of(file);
  try {
    result.note = parse_note(read_note_text(file, result.place), result.place);
    Verdict verdict = compare_notes(*result.note, host_note(), result.place);
    result.refusal = std::move(verdict.refusal);
    result.warnings = std::move(verdict.warnings);
    if (result.accepted()) result.sha256 = sha256_file(file);
  } catch (const DiagnosticError& e) {
    result.refusal = e.diagnostics().front();
  }
  return result;
}

std::vector<std::unique_ptr<PluginFile>> discover(const std::vector<fs::path>& folders) {
  std::vector<std::unique_ptr<PluginFile>> files;
  std::set<std::pair<dev_t, ino_t>> seen;
  for (const fs::path& folder : folders) {
    for (const fs::path& file : plugins_in(folder)) {
      struct stat status {};
      if (::stat(file.c_str(), &status) != 0) continue;  // a dangling link
      if (!seen.emplace(status.st_dev, status.st_ino).second) continue;
      files.push_back(std::make_unique<PluginFile>(judge(file)));
    }
  }
  return files;
}

std::vector<fs::path> plugin_folders(const std::vector<fs::path>& own) {
  std::vector<fs::path> folders = own;
  if (const char* list = std::getenv("ASSAY_PLUGIN_PATH")) {
    std::istringstream stream(list);
    for (std::string folder; std::getline(stream, folder, ':');) {
      if (!folder.empty()) folders.emplace_back(folder);  // empty would be the current folder
    }
  }
  folders.push_back((executable_dir() / ".." / "lib" / "assay" / "plugins").lexically_normal());
  return folders;
}

}  // namespace assay
