// Instances with defaults, companions from the installed plugins, and the process's state.
#include "core/conformance/subject.h"

#include <ATen/Parallel.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <algorithm>
#include <fstream>

#include "core/base/files.h"
#include "core/plugin/discovery.h"

namespace assay::conformance {
namespace {

/// A corpus of words with some structure, long enough for a few hundred rows of 64 tokens.
std::filesystem::path corpus_file() {
  static const std::filesystem::path file = [] {
    const std::vector<std::string> words{"the", "river", "carries", "a",      "stone", "over",
                                         "old", "roots", "and",     "nobody", "asks",  "why"};
    std::string text;
    uint32_t state = 12345;
    for (int i = 0; i < 20'000; ++i) {
      state = state * 1664525u + 1013904223u;
      text += words[(state >> 16) % words.size()];
      text += (state >> 20) % 9 == 0 ? ".\n" : " ";
    }
    const auto path = std::filesystem::temp_directory_path() /
                      ("assay_corpus_" + std::to_string(::getpid()) + ".txt");
    write_file_atomically(path, text);
    return path;
  }();
  return file;
}

int thread_count() {
  int count = 0;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    ++count;
  }
  return count;
}

}  // namespace

bool Subject::provides(const std::string& capability) const {
  const auto& words = entry->manifest.provides;
  return std::find(words.begin(), words.end(), capability) != words.end();
}

std::optional<OptionValues> Subject::defaults() const {
  OptionValues values;
  for (const OptionSpec& spec : entry->options) {
    if (!spec.required) continue;
    if (spec.type == OptionType::path) {
      values[spec.name] = corpus_file().string();
    } else if (spec.type == OptionType::choice) {
      values[spec.name] = spec.choices.front();
    } else {
      return std::nullopt;
    }
  }
  return values;
}

bool load_companion(Kind kind, const std::string& name) {
  if (registry().find(kind, name)) return true;
  const std::string id = std::string(name_of(kind)) + "/" + name;
  for (const auto& file : discover(plugin_folders({}))) {
    if (!file->accepted()) continue;
    const auto& ids = file->note->components;
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) continue;
    load_plugin(file->path);
    return true;
  }
  return false;
}

ProcessState process_state() {
  return {_mm_getcsr() & 0xFFC0u,  // without the sticky exception flags
          thread_count(), at::GradMode::is_enabled(),
          c10::toString(c10::get_default_dtype_as_scalartype()), at::get_num_threads()};
}

LoadRecord& load_record() {
  static LoadRecord record;
  return record;
}

}  // namespace assay::conformance
