// A worker that breaks in any way costs its own cell only, and its state says how.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "core/host/recovery.h"
#include "tests/core/host/harness.h"

namespace assay::host {
namespace {

using testing::HasSubstr;

/// The faulty cell runs between two good ones; both launchers give the same states.
class Fault : public testing::TestWithParam<bool> {
 protected:
  FakeStudy& run(const nlohmann::json& fake, int world = 1,
                 const std::function<void(SupervisorOptions&)>& change = {}) {
    study_.emplace(std::vector{fake_cell(0, {}), fake_cell(1, fake, world), fake_cell(2, {})});
    FakeStudy& study = *study_;
    study.options().use_template = GetParam();
    if (change) change(study.options());
    result_ = study.run();
    EXPECT_EQ(study.state(0), "ok");
    EXPECT_EQ(study.state(2), "ok");
    EXPECT_EQ(study.count("SELECT count(*) FROM runs WHERE state='running'"), 0);
    return study;
  }
  std::optional<FakeStudy> study_{};
  SupervisorResult result_{};
};

INSTANTIATE_TEST_SUITE_P(Launcher, Fault, testing::Bool(),
                         [](const auto& info) { return info.param ? "Template" : "Exec"; });

TEST_P(Fault, SegmentationFaultFailsWithItsStack) {
  const auto& study = run({{"behaviour", "crash"}});
  EXPECT_EQ(study.state(1), "fail");
  EXPECT_EQ(study.attempt(1, "signal"), std::to_string(SIGSEGV));
  EXPECT_EQ(study.attempt(1, "reason"), "crashed with SIGSEGV, phase step, step 1");
  EXPECT_THAT(study.attempt(1, "stderr_tail"), HasSubstr("signal SIGSEGV, stack:"));
  EXPECT_EQ(study.count("SELECT count(*) FROM v_step s JOIN runs USING(run_id) WHERE state='fail'"),
            1);  // the step before the crash is kept
  EXPECT_EQ(result_.exit_code, 1);
}

TEST_P(Fault, ExceptionFailsWithItsWords) {
  const auto& study = run({{"behaviour", "throw"}});
  EXPECT_EQ(study.state(1), "fail");
  EXPECT_EQ(study.attempt(1, "exit_code"), "1");
  EXPECT_EQ(study.attempt(1, "reason"), "lion: momentum is missing");
}

TEST_P(Fault, WhatIsNoExceptionFails) {
  const auto& study = run({{"behaviour", "throw_int"}});
  EXPECT_EQ(study.state(1), "fail");
  EXPECT_EQ(study.attempt(1, "reason"), "something was thrown that is no std::exception");
}

TEST_P(Fault, ExitFails) {
  EXPECT_EQ(run({{"behaviour", "exit3"}}).attempt(1, "reason"), "exit code 3, phase step, step 1");
  EXPECT_EQ(run({{"behaviour", "exit0"}}).attempt(1, "reason"),
            "the worker left with exit code 0 before the end of its run, phase step, step 1");
}

TEST_P(Fault, HangIsATimeoutWithAStack) {
  const auto& study =
      run({{"behaviour", "hang"}}, 1, [](auto& o) { o.keys.step_timeout_ns = 500'000'000; });
  EXPECT_EQ(study.state(1), "timeout");
  EXPECT_EQ(study.attempt(1, "reason"), "no step for run.step_timeout 500ms, phase step, step 1");
  EXPECT_THAT(study.attempt(1, "stderr_tail"), HasSubstr("signal SIGQUIT, stack:"));
}

TEST_P(Fault, TotalTimeout) {
  const auto& study =
      run({{"behaviour", "hang"}}, 1, [](auto& o) { o.keys.timeout_ns = 700'000'000; });
  EXPECT_EQ(study.state(1), "timeout");
  EXPECT_THAT(study.attempt(1, "reason"), HasSubstr("not done after run.timeout 700ms"));
}

TEST_P(Fault, ALostHeartbeatIsATimeout) {
  const auto& study = run({{"behaviour", "stopped"}}, 1, [](auto& o) {
    o.patience.heartbeat_limit = std::chrono::milliseconds(1500);
  });
  EXPECT_EQ(study.state(1), "timeout");
  EXPECT_THAT(study.attempt(1, "reason"), HasSubstr("no heartbeat of rank 0 for 1500ms"));
}

TEST_P(Fault, RubbishOnEveryDescriptorIsHarmless) {
  const auto& study = run({{"behaviour", "rubbish"}});
  EXPECT_EQ(study.state(1), "ok");
}

TEST_P(Fault, EatingAllMemoryIsOom) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "a worker cannot limit its memory under AddressSanitizer";
#endif
  const auto& study = run({{"behaviour", "eat_memory"}}, 1,
                          [](auto& o) { o.keys.memory_limit_bytes = int64_t{512} << 20; });
  EXPECT_EQ(study.state(1), "oom");
  EXPECT_EQ(study.attempt(1, "exit_code"), "12");
  EXPECT_EQ(study.attempt(1, "last_step"), "1");
  EXPECT_EQ(result_.exit_code, 0);  // a result like any other
}

TEST_P(Fault, KilledFromOutside) {
  const auto& study = run({{"behaviour", "killed"}});
  EXPECT_EQ(study.state(1), "killed");
  EXPECT_EQ(study.attempt(1, "reason"), "SIGKILL from outside, phase step, step 1");
  EXPECT_EQ(result_.exit_code, 4);
}

TEST_P(Fault, NonFiniteLossIsInvalid) {
  const auto& study = run({{"behaviour", "nan"}});
  EXPECT_EQ(study.state(1), "invalid");
  EXPECT_THAT(study.attempt(1, "reason"), HasSubstr("not finite at step 3"));
}

TEST_P(Fault, DamagedSpoolIsInvalidAndNamesTheLine) {
  const auto& study = run({{"behaviour", "damaged_spool"}});
  EXPECT_EQ(study.state(1), "invalid");
  EXPECT_THAT(study.attempt(1, "reason"), HasSubstr(".r0.jl:3: damaged spool row"));
}

TEST_P(Fault, TornLastLineIsDroppedAndRowsBeforeItAreKept) {
  auto& study = run({{"behaviour", "torn_spool"}});
  EXPECT_EQ(study.state(1), "fail");
  EXPECT_THAT(study.listener().all_notes(), HasSubstr("torn last line was dropped"));
  EXPECT_EQ(study.count("SELECT count(*) FROM v_step s JOIN runs USING(run_id) WHERE state='fail'"),
            1);
}

TEST_P(Fault, OneRankOfTwoDecides) {
  const auto& study = run({{"behaviour", "crash"}, {"rank", 1}, {"step_ms", 50}}, 2);
  EXPECT_EQ(study.state(1), "fail");
  EXPECT_EQ(study.attempt(1, "reason"), "rank 1: crashed with SIGSEGV, phase step, step 1");
  EXPECT_THAT(study.attempt(1, "log_path"), HasSubstr("rank1.log"));
}

TEST_P(Fault, InfraIsRetriedTwice) {
  const auto& study = run({{"behaviour", "infra"}});
  EXPECT_EQ(study.state(1), "infra");
  EXPECT_EQ(study.attempt(1, "n"), "3");
  EXPECT_EQ(study.attempt(1, "reason"), "the peer at rank 1 is gone");
  EXPECT_EQ(result_.exit_code, 4);
}

TEST_P(Fault, AnOrphanOfThePluginIsKilledWithItsGroup) {
  const auto& study = run({{"behaviour", "orphan"}});
  EXPECT_EQ(study.state(1), "ok");
  std::ifstream log(study.attempt(1, "log_path"));
  std::string word;
  int pid = 0;
  log >> word >> pid;
  ASSERT_EQ(word, "orphan");
  EXPECT_FALSE(runs(pid));
}

TEST(FullDisk, StopsTheStudyWithExitCode4) {
  FakeStudy study({fake_cell(0, {{"behaviour", "full_disk"}}), fake_cell(1, {}), fake_cell(2, {})});
  study.options().keys.devices = 1;
  const auto result = study.run();
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_EQ(study.state(0), "infra");
  EXPECT_EQ(study.attempt(0, "n"), "1");
  EXPECT_EQ(study.state(1), "none");
  EXPECT_EQ(study.count("SELECT count(*) FROM runs WHERE state='queued'"), 2);
}

}  // namespace
}  // namespace assay::host
