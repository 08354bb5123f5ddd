// Golden findings of the linter: the files of tests/data/lint/*.case, each study planned against
// the fake catalogue and stored. ASSAY_UPDATE_CASES=1 rewrites them: review the difference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/base/files.h"
#include "core/cli/comparing.h"
#include "core/host/study.h"
#include "core/store/store.h"
#include "tests/core/cli/case_file.h"
#include "tests/core/grid/study_files.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLint = "lint ";

class LintCases : public grid::StudyFiles {
 protected:
  LintCases() {
    before_ = fs::current_path();
    fs::current_path(folder_);
  }
  ~LintCases() override { fs::current_path(before_); }

  /// What `assay run FILE` prints of the linter.
  std::string lint(const fs::path& file) {
    grid::PlanRequest request;
    request.file = file;
    grid::Plan plan = plan_file(std::move(request));
    for (grid::Cell& cell : plan.cells) cell.plugin_files.clear();  // the catalogue has no files
    store::Store store(folder_ / (file.stem().string() + ".db"));
    const int64_t study_id = host::store_plan(store, plan);
    const store::Reader reader(store.file());
    const auto comparisons =
        host::declared_comparisons(reader, study_id, plan.compare, host::traits_of(components_));
    EXPECT_FALSE(comparisons.empty());
    std::ostringstream err;
    Context context;
    context.err = &err;
    try {
      require_fair(reader, reader.study(plan.study), comparisons, context);
      return err.str();
    } catch (const DiagnosticError& error) {
      return render(error.diagnostics());
    }
  }

 private:
  fs::path before_;
};

TEST_F(LintCases, AreFoundAtTheirPlaces) {
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(ASSAY_TEST_DATA) / "lint")) {
    const CaseFile golden = parse_case(read_file(entry.path()));
    CaseFile seen = golden;
    for (CaseStep& step : seen.steps) {
      if (step.head.starts_with(kLint)) {
        step.content = lint(step.head.substr(kLint.size()));
        ++count;
      } else {
        write(step.head, step.content);
      }
    }
    if (std::getenv("ASSAY_UPDATE_CASES")) {
      std::ofstream(entry.path(), std::ios::binary) << print_case(seen);
    } else {
      EXPECT_EQ(print_case(golden), print_case(seen)) << entry.path();
    }
  }
  EXPECT_GE(count, 4u);
}

}  // namespace
}  // namespace assay::cli
