// Subprocess: output, endings, limits.
#include "core/base/subprocess.h"

#include <gtest/gtest.h>

#include "assay/error.h"
#include "core/base/clock.h"

namespace assay {
namespace {

ProcessResult shell(const std::string& script, double limit_s = 60) {
  return run_process({"/bin/sh", "-c", script}, limit_s, {{"WORD", "from outside"}});
}

TEST(Subprocess, CollectsBothStreamsAndTheCode) {
  const ProcessResult result = shell("echo \"$WORD\"; echo oops >&2; exit 3");
  EXPECT_EQ(result.out, "from outside\n");
  EXPECT_EQ(result.err, "oops\n");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.ending(), "exit code 3");
  EXPECT_FALSE(result.ok());
}

TEST(Subprocess, TakesMoreThanAPipeHolds) {
  EXPECT_EQ(shell("head -c 1000000 /dev/zero").out.size(), 1'000'000u);
}

TEST(Subprocess, NamesTheSignal) {
  const ProcessResult result = shell("kill -SEGV $$");
  EXPECT_EQ(result.exit_code, -1);
  EXPECT_EQ(result.ending(), "SIGSEGV");
}

TEST(Subprocess, KillsWhatDoesNotEnd) {
  const double start = monotonic_s();
  const ProcessResult result = shell("echo begun; while :; do :; done", 0.3);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.out, "begun\n");
  EXPECT_EQ(result.ending(), "no end within its time");
  EXPECT_LT(monotonic_s() - start, 30);
}

TEST(Subprocess, DoesNotWaitForAGrandchildThatKeepsThePipe) {
  EXPECT_FALSE(shell("sleep 1000 & echo done", 30).timed_out);
}

TEST(Subprocess, AMissingProgramIsAnError) {
  EXPECT_THROW(run_process({"/nowhere/program"}, 1), Error);
}

}  // namespace
}  // namespace assay
