// Generators and lowering against files that PyTorch 2.11 wrote (tests/data/schedule/README.md).
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "assay/files.h"
#include "assay/pipeline.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

/// NAME_pP_vV_mM[_lowered].csv
struct Exported {
  fs::path file;
  std::string schedule;
  PipelineShape shape;
  bool lowered;
};

std::vector<Exported> exported_files() {
  const std::regex pattern("(.+)_p(\\d+)_v(\\d+)_m(\\d+)(_lowered)?\\.csv");
  std::vector<Exported> files;
  for (const auto& entry : fs::directory_iterator(fs::path(ASSAY_TEST_DATA) / "schedule")) {
    const std::string name = entry.path().filename().string();
    std::smatch part;
    if (!std::regex_match(name, part, pattern)) continue;
    files.push_back({entry.path(),
                     part[1],
                     {std::stoi(part[2]), std::stoi(part[3]), std::stoi(part[4])},
                     part[5].matched});
  }
  return files;
}

TEST(PyTorch, WritesTheSameSchedules) {
  const std::vector<Exported> files = exported_files();
  EXPECT_EQ(files.size(), 14U);
  for (const auto& [file, name, shape, lowered] : files) {
    std::vector<ActionList> lists = generate(name, shape);
    if (lowered) lists = lower(lists, ranks_of_stages(pipeline_schedule(name).placement, shape));
    EXPECT_EQ(print_schedule_csv(lists), read_file(file)) << file;
  }
}

TEST(PyTorch, FilesAreReadAndValid) {
  for (const auto& [file, name, shape, lowered] : exported_files()) {
    const ScheduleFile read = read_schedule_csv(file);
    EXPECT_EQ(read.microbatches, shape.microbatches) << file;
    EXPECT_EQ(read.lowered, lowered) << file;
    EXPECT_EQ(print_schedule_csv(read.lists), read_file(file));
  }
}

}  // namespace
}  // namespace assay
