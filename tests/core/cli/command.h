// A command of assay, run in this process.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "core/cli/context.h"

namespace assay::cli {

struct Answer {
  int code = 0;
  std::string out{}, err{};
  bool says(const std::string& words) const { return (out + err).find(words) != std::string::npos; }
};

/// `words` follow "assay".
inline Answer assay_command(std::vector<std::string> words) {
  std::ostringstream out, err;
  Context context = default_context();
  context.out = &out;
  context.err = &err;
  words.insert(words.begin(), "assay");
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  const int code = run_cli(static_cast<int>(argv.size()), argv.data(), context);
  return {code, out.str(), err.str()};
}

}  // namespace assay::cli
