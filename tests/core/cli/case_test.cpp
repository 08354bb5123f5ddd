// Golden cases of the command line: every .case file of tests/data/{plan,grid,cli}, each run in
// this process against the fake catalogue. ASSAY_UPDATE_CASES=1 rewrites them: review the
// difference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>

#include "core/base/files.h"
#include "core/cli/context.h"
#include "tests/core/cli/case_file.h"
#include "tests/core/grid/fake_components.h"

namespace assay::cli {

namespace fs = std::filesystem;

std::vector<std::string> CaseStep::words() const {
  std::vector<std::string> words(1);
  char quote = 0;
  for (const char c : head.substr(0, head.rfind(" -> "))) {
    if (quote ? c == quote : c == '"' || c == '\'') {
      quote = quote ? 0 : c;
    } else if (c == ' ' && !quote) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

int CaseStep::exit_code() const { return std::stoi(head.substr(head.rfind(" -> ") + 4)); }

CaseFile parse_case(const std::string& text) {
  CaseFile file;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("=== ")) {
      file.steps.push_back({line.substr(4), ""});
    } else {
      (file.steps.empty() ? file.comment : file.steps.back().content) += line + "\n";
    }
  }
  return file;
}

std::string print_case(const CaseFile& file) {
  std::string text = file.comment;
  for (const CaseStep& step : file.steps) text += "=== " + step.head + "\n" + step.content;
  return text;
}

std::string masked(std::string text, const fs::path& folder) {
  for (size_t at; (at = text.find(folder.string())) != text.npos;) {
    text.replace(at, folder.string().size(), "<dir>");
  }
  text = std::regex_replace(text, std::regex("\\b[0-9a-f]{64}\\b"), "<hash>");
  text = std::regex_replace(text, std::regex("\\b[0-9a-f]{12}\\b"), "<id>");
  return std::regex_replace(text, std::regex("~[0-9a-f]{6}\\b"), "~<6>");
}

namespace {

/// Runs one command of a case; stderr stands before stdout, as the golden texts have it.
std::string run(const CaseStep& step, int& code) {
  std::ostringstream out, err;
  Context context = default_context();
  context.out = &out;
  context.err = &err;
  context.components = [](const auto&) -> std::unique_ptr<grid::Components> {
    return std::make_unique<grid::FakeComponents>();
  };
  context.binaries = grid::fake_binaries;
  context.machine = [] { return grid::fake_machine(); };
  const std::vector<std::string> words = step.words();
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  code = run_cli(static_cast<int>(argv.size()), argv.data(), context);
  return err.str() + out.str();
}

class CaseTest : public ::testing::Test {
 public:
  explicit CaseTest(fs::path file) : file_(std::move(file)) {}

  void TestBody() override {
    CaseFile golden = parse_case(read_file(file_));
    CaseFile seen = golden;
    const fs::path folder = fs::temp_directory_path() / ("assay_case_" + std::to_string(getpid()));
    fs::create_directories(folder);
    ::setenv("ASSAY_CACHE_DIR", (folder / ".cache").c_str(), 1);
    ::setenv("ASSAY_CASE", "from the environment", 1);
    const fs::path before = fs::current_path();
    fs::current_path(folder);
    for (CaseStep& step : seen.steps) execute(step, folder);
    fs::current_path(before);
    fs::remove_all(folder);
    if (std::getenv("ASSAY_UPDATE_CASES")) {
      std::ofstream(file_, std::ios::binary) << print_case(seen);
    } else {
      EXPECT_EQ(print_case(golden), print_case(seen)) << file_;
    }
  }

 private:
  static void execute(CaseStep& step, const fs::path& folder) {
    if (!step.is_command()) {
      fs::create_directories((folder / step.head).parent_path());
      std::string content = step.content;  // "\0" stands for a zero byte
      for (size_t at; (at = content.find("\\0")) != content.npos;) content.replace(at, 2, 1, '\0');
      if (content == "(empty)\n") content.clear();
      std::ofstream(folder / step.head, std::ios::binary) << content;
      return;
    }
    int code = 0;
    step.content = masked(run(step, code), folder);
    step.head = step.head.substr(0, step.head.rfind(" -> ")) + " -> " + std::to_string(code);
  }

  fs::path file_;
};

std::vector<fs::path> case_files() {
  std::vector<fs::path> files;
  for (const char* folder : {"plan", "grid", "cli"}) {
    const fs::path root = fs::path(ASSAY_TEST_DATA) / folder;
    if (!fs::exists(root)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      if (entry.path().extension() == ".case") files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

const bool kRegistered = [] {
  for (const fs::path& file : case_files()) {
    const std::string name = file.parent_path().filename().string() + "_" + file.stem().string();
    ::testing::RegisterTest("Case", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [file]() -> ::testing::Test* { return new CaseTest(file); });
  }
  return true;
}();

TEST(CaseFiles, AreFound) {
  EXPECT_TRUE(kRegistered);
  EXPECT_GE(case_files().size(), 30U);
}

}  // namespace
}  // namespace assay::cli
