// --resume-from: a folder for every run, or each run's own checkpoints.
#include "core/host/resume_point.h"

#include <gtest/gtest.h>

#include "assay/error.h"
#include "tests/core/checkpoint/saved.h"

namespace assay::host {
namespace {

namespace fs = std::filesystem;
using checkpoint::Plan;

const Plan kVector{.name = "v", .shape = {2}, .boxes = {{{0}, {2}}}};

/// The attempts of a run, newest first: the newest died before it saved.
class Attempts : public testing::Test {
 protected:
  Attempts() {
    fs::create_directories(folders_[0]);
    checkpoint::save(folders_[1] / checkpoint::kFolderName, {kVector}, 20);
    checkpoint::save(folders_[1] / checkpoint::kFolderName, {kVector}, 30);
    checkpoint::save(folders_[2] / checkpoint::kFolderName, {kVector}, 10);
  }
  std::optional<int64_t> step(const std::string& text) const {
    const auto point = ResumeFrom(text).point(folders_);
    if (!point) return std::nullopt;
    EXPECT_TRUE(fs::exists(point->checkpoint / checkpoint::kManifestName));
    EXPECT_TRUE(point->checkpoint.is_absolute());
    return point->step;
  }

  const checkpoint::TemporaryFolder root_;
  const std::vector<fs::path> folders_ = {root_.path() / "r0.3", root_.path() / "r0.2",
                                          root_.path() / "r0.1"};
};

TEST_F(Attempts, NothingSaidIsStepZero) { EXPECT_FALSE(step("").has_value()); }

TEST_F(Attempts, LatestIsTheNewestOfTheNewestAttemptThatHasOne) {
  EXPECT_EQ(step("latest"), 30);
  EXPECT_FALSE(ResumeFrom("latest").point({folders_[0]}).has_value()) << "none yet: step 0";
}

TEST_F(Attempts, AStepIsTakenFromTheAttemptThatHasIt) {
  EXPECT_EQ(step("20"), 20);
  EXPECT_EQ(step("10"), 10);
  EXPECT_NE(checkpoint::refusal([&] { step("15"); }).find("checkpoint of step 15"),
            std::string::npos);
}

TEST_F(Attempts, AFolderServesEveryRun) {
  EXPECT_EQ(step(folders_[2].string()), 10);
  EXPECT_EQ(step((folders_[1] / checkpoint::kFolderName / "step-00000020").string()), 20);
  EXPECT_FALSE(ResumeFrom(folders_[2].string()).uses_attempts());
  EXPECT_THROW(ResumeFrom{folders_[0].string()}, Error);
}

}  // namespace
}  // namespace assay::host
