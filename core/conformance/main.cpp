// assay-check FILE [--filter=F] [--list]: opens one plugin and runs the suites of its kinds. Exit 0
// passed, 1 failed, 2 refused, 77 skipped.
#include <fnmatch.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <sstream>

#include "core/base/diagnostic.h"
#include "core/base/files.h"
#include "core/conformance/subject.h"
#include "core/intercept/host_allocator.h"

namespace assay::conformance {
namespace {

constexpr int kRefused = 2;
constexpr int kSkipped = 77;

struct Arguments {
  std::string file, filter = "*";
  bool list = false;
};

std::optional<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--list") {
      arguments.list = true;
    } else if (word.starts_with("--filter=")) {
      arguments.filter = word.substr(9);
    } else if (arguments.file.empty() && word[0] != '-') {
      arguments.file = word;
    } else {
      return std::nullopt;
    }
  }
  if (arguments.file.empty()) return std::nullopt;
  return arguments;
}

/// Runs `call` with standard output in a file; gives what was printed.
template <class Call>
std::string captured(Call call) {
  std::string name = (std::filesystem::temp_directory_path() / "assay_check.XXXXXX").string();
  const int file = ::mkstemp(name.data());
  const int saved = ::dup(STDOUT_FILENO);
  ::dup2(file, STDOUT_FILENO);
  const auto restore = [&] {
    std::fflush(stdout);
    std::cout.flush();
    ::dup2(saved, STDOUT_FILENO);
    ::close(saved);
    ::close(file);
    const std::string printed = read_file(name);
    ::unlink(name.c_str());
    return printed;
  };
  try {
    call();
  } catch (...) {
    restore();
    throw;
  }
  return restore();
}

const LoadedPlugin& load_watched(const std::string& file) {
  const LoadedPlugin* plugin = nullptr;
  LoadRecord& record = load_record();
  record.before = process_state();
  record.printed = captured([&] { plugin = &load_plugin(file); });
  record.after = process_state();
  return *plugin;
}

/// Hands a case to GoogleTest.
class CaseTest : public testing::Test {
 public:
  CaseTest(Case test, Subject subject) : case_(std::move(test)), subject_(subject) {}
  void TestBody() override { case_.run(subject_); }

 private:
  const Case case_;
  const Subject subject_;
};

std::vector<Case> all_cases() {
  std::vector<Case> all = common_cases();
  for (auto* suite : {&optim_cases, &data_cases, &model_cases, &training_cases, &comm_cases}) {
    for (Case& test : suite()) all.push_back(std::move(test));
  }
  return all;
}

/// `filter`: globs over "KIND/NAME.Case", separated by colons.
bool matches_filter(const std::string& name, const std::string& filter) {
  std::istringstream globs(filter);
  for (std::string glob; std::getline(globs, glob, ':');) {
    if (::fnmatch(glob.c_str(), name.c_str(), 0) == 0) return true;
  }
  return false;
}

/// Gives the names of the tests.
std::vector<std::string> register_tests(const LoadedPlugin& plugin, const std::string& filter) {
  std::vector<std::string> names;
  const std::vector<Case> cases = all_cases();
  for (const Registration* entry : registry().entries()) {
    for (const Case& test : cases) {
      if (test.kind && *test.kind != entry->kind) continue;
      const std::string name = entry->id() + "." + test.name;
      if (!matches_filter(name, filter)) continue;
      names.push_back(name);
      const Subject subject{&plugin, std::make_shared<const Registration>(*entry)};
      testing::RegisterTest(entry->id().c_str(), test.name, nullptr, nullptr, __FILE__, __LINE__,
                            [test, subject]() -> CaseTest* { return new CaseTest(test, subject); });
    }
  }
  return names;
}

int run(const Arguments& arguments) {
  intercept::install_host_allocator();
  const std::vector<std::string> names =
      register_tests(load_watched(arguments.file), arguments.filter);
  if (arguments.list) {
    for (const std::string& name : names) std::printf("%s\n", name.c_str());
    return 0;
  }
  int argc = 1;
  char program[] = "assay-check";
  char* argv[] = {program, nullptr};
  testing::InitGoogleTest(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  if (failed) return 1;
  return all.successful_test_count() == 0 && all.skipped_test_count() > 0 ? kSkipped : 0;
}

}  // namespace
}  // namespace assay::conformance

int main(int argc, char** argv) {
  using namespace assay;
  const auto arguments = conformance::parse(argc, argv);
  if (!arguments) {
    std::cerr << "usage: assay-check FILE [--filter=F] [--list]\n";
    return conformance::kRefused;
  }
  try {
    return conformance::run(*arguments);
  } catch (const DiagnosticError& e) {
    std::cerr << render(e.diagnostics());
  } catch (const Error& e) {
    std::cerr << render(Diagnostic{.place = arguments->file, .text = e.what()});
  }
  return conformance::kRefused;
}
