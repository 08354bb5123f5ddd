// Runs assay-check (core/conformance) once per test and reads what became of each.
#include "core/cli/plugins_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <sstream>
#include <vector>

#include "assay/error.h"
#include "core/base/clock.h"
#include "core/base/diagnostic.h"
#include "core/base/files.h"
#include "core/base/subprocess.h"
#include "core/plugin/discovery.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kTestLimit_s = 300;
constexpr int kPassed = 0, kFailed = 1, kRefused = 2, kCrashed = 4;
constexpr int kSkipCode = 77;  // assay-check: every test that ran was skipped

std::string checker() {
  const fs::path program = executable_dir() / "assay-check";
  if (!fs::exists(program)) {
    throw Error(program.string() + ": the conformance suites are not built",
                "build or install assay with LibTorch");
  }
  return program.string();
}

std::vector<std::string> command(const fs::path& file, const std::string& filter) {
  std::vector<std::string> words{checker(), fs::absolute(file).string()};
  if (!filter.empty()) words.push_back("--filter=" + filter);
  return words;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Names of the tests, or nothing when the plugin could not be opened.
std::vector<std::string> test_names(const fs::path& file, const CheckOptions& options,
                                    std::ostream& err, int* code) {
  std::vector<std::string> words = command(file, options.filter);
  words.push_back("--list");
  const ProcessResult result = run_process(words, kTestLimit_s);
  *code = result.ok() ? kPassed : result.exit_code == kRefused ? kRefused : kCrashed;
  if (result.ok()) return lines_of(result.out);
  err << result.err;
  if (*code == kCrashed) {
    err << render(Diagnostic{.id = "P06",
                             .place = place_of(file),
                             .text = "the plugin could not be opened: " + result.ending()});
  }
  return {};
}

/// Lines worth printing of a failed test: not GoogleTest's own frame.
std::string indented(const std::string& text) {
  std::string result;
  for (const std::string& line : lines_of(text)) {
    if (line.empty() || line[0] == '[' || line.starts_with("Note: ") ||
        line.starts_with("Running "))
      continue;
    result += "       " + line + "\n";
  }
  return result;
}

struct Counts {
  int passed = 0, skipped = 0, failed = 0, crashed = 0;
};

void report(const std::string& name, const ProcessResult& result, double seconds, std::ostream& out,
            Counts& counts) {
  if (result.exit_code == kSkipCode) {
    ++counts.skipped;
    out << fmt::format("skip   {}\n{}", name, indented(result.out));
  } else if (result.ok()) {
    ++counts.passed;
    out << fmt::format("ok     {} ({:.2f} s)\n", name, seconds);
  } else if (result.exit_code == kFailed) {
    ++counts.failed;
    out << fmt::format("FAIL   {}\n{}", name, indented(result.out));
  } else {
    ++counts.crashed;
    out << fmt::format("CRASH  {}: {}\n{}{}", name, result.ending(), indented(result.out),
                       indented(result.err));
  }
}

int exit_code(const Counts& counts) {
  return counts.crashed > 0 ? kCrashed : counts.failed > 0 ? kFailed : kPassed;
}

int run_one_by_one(const fs::path& file, const std::vector<std::string>& names, std::ostream& out) {
  Counts counts;
  for (const std::string& name : names) {
    const double start = monotonic_s();
    const ProcessResult result = run_process(command(file, name), kTestLimit_s);
    report(name, result, monotonic_s() - start, out, counts);
    out.flush();
  }
  out << fmt::format("{} passed, {} failed, {} crashed or timed out, {} skipped\n", counts.passed,
                     counts.failed, counts.crashed, counts.skipped);
  return exit_code(counts);
}

int run_together(const fs::path& file, const CheckOptions& options, std::ostream& out,
                 std::ostream& err) {
  const ProcessResult result = run_process(command(file, options.filter), kTestLimit_s);
  out << result.out;
  err << result.err;
  if (result.ok() || result.exit_code == kSkipCode) return kPassed;
  return result.exit_code == kFailed || result.exit_code == kRefused ? result.exit_code : kCrashed;
}

}  // namespace

int check_plugin(const fs::path& file, const CheckOptions& options, std::ostream& out,
                 std::ostream& err) {
  const PluginFile judged = judge(file);
  if (judged.refusal) {
    err << render(*judged.refusal);
    return kRefused;
  }
  for (const std::string& warning : judged.warnings) err << "warning: " << warning << "\n";
  if (options.in_process) return run_together(file, options, out, err);
  int code = kPassed;
  const std::vector<std::string> names = test_names(file, options, err, &code);
  if (code != kPassed) return code;
  if (names.empty()) throw Error("no test matches '" + options.filter + "'");
  if (!options.list) return run_one_by_one(file, names, out);
  for (const std::string& name : names) out << name << "\n";
  return kPassed;
}

}  // namespace assay::cli
