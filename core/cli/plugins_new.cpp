// Copies a template folder, its placeholders replaced.
#include "core/cli/plugins_new.h"

#include <algorithm>
#include <map>

#include "assay/error.h"
#include "core/base/files.h"
#include "core/plugin/note.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".in";

bool is_name(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name[0] >= 'a' && name[0] <= 'z' &&
         std::all_of(name.begin(), name.end(), allowed);
}

/// my_lion -> MyLion
std::string class_name(const std::string& name) {
  std::string result;
  bool start = true;
  for (const char c : name) {
    if (c == '_') {
      start = true;
      continue;
    }
    result += start && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    start = false;
  }
  return result;
}

std::string filled(std::string text, const std::map<std::string, std::string>& values) {
  for (const auto& [key, value] : values) {
    const std::string placeholder = "@" + key + "@";
    for (size_t at = 0; (at = text.find(placeholder, at)) != std::string::npos;
         at += value.size()) {
      text.replace(at, placeholder.size(), value);
    }
  }
  return text;
}

fs::path templates() {
  return (executable_dir() / ".." / "share" / "assay" / "templates").lexically_normal();
}

std::vector<fs::path> files_in(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    throw Error(folder.string() + ": the plugin templates are missing", "install assay again");
  }
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == kSuffix) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::vector<fs::path> new_plugin(Kind kind, const std::string& name, const fs::path& folder) {
  if (!is_name(name)) {
    throw Error("'" + name +
                "' is no plugin name: lower-case letters, digits and _, a letter first");
  }
  if (fs::exists(folder)) throw Error(folder.string() + " exists already; nothing was written");
  std::vector<fs::path> sources = files_in(templates() / name_of(kind));
  const std::vector<fs::path> common = files_in(templates() / "common");
  sources.insert(sources.end(), common.begin(), common.end());
  std::string slug = name;  // a study's name has no underscores
  std::replace(slug.begin(), slug.end(), '_', '-');
  const std::map<std::string, std::string> values = {{"kind", name_of(kind)},
                                                     {"name", name},
                                                     {"Name", class_name(name)},
                                                     {"slug", slug},
                                                     {"version", host_note().version}};
  fs::create_directories(folder);
  std::vector<fs::path> written;
  for (const fs::path& source : sources) {
    const std::string target = filled(source.stem().string(), {{"name", name}});
    written.push_back(folder / target);
    write_file_atomically(written.back(), filled(read_file(source), values));
  }
  return written;
}

}  // namespace assay::cli
