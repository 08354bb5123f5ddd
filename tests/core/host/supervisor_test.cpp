// Queue, devices, templates, signals, second supervisors: with fake cells.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <fstream>

#include "assay/error.h"
#include "core/base/clock.h"
#include "core/base/diagnostic.h"
#include "core/host/device_lock.h"
#include "tests/core/host/harness.h"

namespace assay::host {
namespace {

using testing::HasSubstr;

std::vector<store::Cell> cells(int count, const nlohmann::json& fake = nlohmann::json::object()) {
  std::vector<store::Cell> list;
  for (int i = 0; i < count; ++i) list.push_back(fake_cell(i, fake));
  return list;
}

std::string refusal(FakeStudy& study) {
  try {
    study.run();
    return "";
  } catch (const DiagnosticError& e) {
    return e.what();
  }
}

TEST(Supervisor, RunsEverythingOnceAndNothingTwice) {
  FakeStudy study(cells(5));
  EXPECT_EQ(study.run().exit_code, 0);
  EXPECT_EQ(study.count("SELECT count(*) FROM attempts WHERE state='ok'"), 5);
  EXPECT_EQ(study.count("SELECT count(*) FROM steps"), 5 * kSteps);
  EXPECT_EQ(study.run().exit_code, 0);
  EXPECT_EQ(study.count("SELECT count(*) FROM attempts"), 5);
}

TEST(Supervisor, KeepsPrivateFoldersAndWholeRecords) {
  FakeStudy study(cells(1));
  study.run();
  const std::filesystem::path log = study.attempt(0, "log_path");
  const auto folder = log.parent_path();
  EXPECT_EQ(folder.filename(), "r0.1");
  EXPECT_EQ(std::filesystem::status(folder).permissions(), std::filesystem::perms::owner_all);
  EXPECT_EQ(std::filesystem::status(folder / "rendezvous").permissions(),
            std::filesystem::perms::owner_all);
  EXPECT_TRUE(std::filesystem::exists(folder / "cell.json"));
  EXPECT_EQ(study.attempt(0, "last_phase"), "done");
  EXPECT_EQ(study.attempt(0, "last_step"), std::to_string(kSteps));
  EXPECT_EQ(study.attempt(0, "exit_code"), "0");
  EXPECT_EQ(study.attempt(0, "log_sha256").size(), 64u);
  EXPECT_EQ(study.count("SELECT count(*) FROM spool_files WHERE rows_declared=rows_imported"), 1);
}

TEST(Supervisor, UntimedRunsShareTheDevices) {
  FakeStudy study(cells(4, {{"step_ms", 30}}));
  study.options().keys.devices = 4;
  study.run();
  EXPECT_GT(study.listener().most_running, 1);
  EXPECT_EQ(study.count("SELECT count(*) FROM attempts WHERE timed=0"), 4);
}

TEST(Supervisor, TimedRunsGoOneByOne) {
  FakeStudy study(cells(3));
  study.options().keys.timed = true;
  EXPECT_EQ(study.run().exit_code, 0);
  EXPECT_EQ(study.listener().most_running, 1);
  EXPECT_EQ(study.count("SELECT count(*) FROM attempts a JOIN attempts b WHERE "
                        "a.attempt_id<b.attempt_id AND b.started_us<a.ended_us"),
            0);
}

TEST(Supervisor, ATimedRunWaitsForTheDevicesAndSaysForWhom) {
  FakeStudy study(cells(1));
  study.options().keys.timed = true;
  DeviceLock other(runtime_dir(), "cpu");
  ASSERT_TRUE(other.try_acquire(DeviceLock::Mode::exclusive));
  struct Releaser : Listener {
    DeviceLock* lock = nullptr;
    void note(const std::string& text) override {
      Listener::note(text);
      if (text.find("waiting for the devices") != std::string::npos) lock->release();
    }
  } listener;
  listener.lock = &other;
  EXPECT_EQ(Supervisor(study.store(), study.options(), listener).run().exit_code, 0);
  EXPECT_THAT(listener.all_notes(), HasSubstr("pid " + std::to_string(getpid())));
}

TEST(Supervisor, ACellThatNeedsMoreDevicesIsRefusedBeforeAnythingRuns) {
  FakeStudy study({fake_cell(0, {}), fake_cell(1, {}, 3)});
  EXPECT_THAT(refusal(study), HasSubstr("cell-1: error[H02]: its 3 ranks need 3 devices; there "
                                        "are 2 (a CPU device is one physical core)"));
  EXPECT_EQ(study.count("SELECT count(*) FROM attempts"), 0);
}

TEST(Supervisor, OnlyAndSelect) {
  FakeStudy study({fake_cell(0, {}), fake_cell(1, {{"behaviour", "throw"}}), fake_cell(2, {})});
  study.options().select = [](const store::QueuedRun& run) { return run.ordinal < 2; };
  EXPECT_EQ(study.run().exit_code, 1);
  EXPECT_EQ(study.state(2), "none");
  study.options().only = {"fail"};
  study.run();
  EXPECT_EQ(study.attempt(1, "n"), "2");
  EXPECT_EQ(study.attempt(0, "n"), "1");
}

TEST(Supervisor, FailFastStartsNothingMore) {
  FakeStudy study({fake_cell(0, {{"behaviour", "throw"}}), fake_cell(1, {}), fake_cell(2, {})});
  study.options().fail_fast = true;
  study.options().keys.devices = 1;
  EXPECT_EQ(study.run().exit_code, 1);
  EXPECT_EQ(study.count("SELECT count(*) FROM runs WHERE state='queued'"), 2);
}

TEST(Supervisor, AnEmptyStudyRanNothing) {
  FakeStudy study({});
  EXPECT_EQ(study.run().exit_code, 4);
}

TEST(Supervisor, RepeatsComeAfterAllCells) {
  auto list = cells(2);
  for (auto& cell : list) cell.repeats = 2;
  FakeStudy study(list);
  study.options().keys.devices = 1;
  study.run();
  std::vector<std::string> order;
  for (const RunView& run : study.listener().ends) {
    order.push_back(run.slug + "/" + std::to_string(run.slot));
  }
  EXPECT_THAT(order, testing::ElementsAre("cell-0/0", "cell-1/0", "cell-0/1", "cell-1/1"));
}

// ---- templates ----

/// A cell that names a plugin file; the fake worker reacts to its name.
store::Cell cell_with_plugin(FakeStudy& study, const std::string& name) {
  const auto file = study.folder() / name;
  std::ofstream(file) << name;
  const std::string hash = sha256_file(file);
  study.store().add_plugin({.name = name,
                            .kind = "optim",
                            .version = "1",
                            .abi = 1,
                            .path = file.string(),
                            .sha256 = hash,
                            .build_type = "Release"});
  auto cell = fake_cell(0, {{"plugin", name}});
  cell.binaries = {{"plugins", {{name, hash}}}};
  return cell;
}

class Template : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Loads, Template,
                         testing::Values("fine", "load-throws", "load-crashes", "load-threads"));

/// Whatever a plugin does to the template while it is loaded, its cell still gets a worker.
TEST_P(Template, FallsBackToExec) {
  FakeStudy study({});
  const auto cell = cell_with_plugin(study, GetParam());
  study.options().study_id = study.store().add_study({.name = "with-plugin",
                                                      .yaml_sha256 = std::string(64, '6'),
                                                      .resolved_json = "{}",
                                                      .cells = {cell}});
  EXPECT_EQ(study.run().exit_code, 0) << study.listener().all_notes();
  EXPECT_EQ(study.count("SELECT count(*) FROM attempt_plugins"), 1);
}

TEST(Plugins, AChangedFileIsInfraAndNamed) {
  FakeStudy study({});
  const auto cell = cell_with_plugin(study, "lion.assay.so");
  study.options().study_id = study.store().add_study({.name = "with-plugin",
                                                      .yaml_sha256 = std::string(64, '6'),
                                                      .resolved_json = "{}",
                                                      .cells = {cell}});
  study.options().keys.retries = 0;
  std::ofstream(study.folder() / "lion.assay.so", std::ios::app) << "rebuilt";
  EXPECT_EQ(study.run().exit_code, 4);
  ASSERT_EQ(study.listener().ends.size(), 1u);
  EXPECT_THAT(study.listener().ends[0].reason,
              HasSubstr("plugin 'lion.assay.so' is gone or has changed"));
}

TEST(Launchers, GiveTheSameNumbers) {
  FakeStudy study(cells(1));
  auto again = fake_cell(0, {}, 1, "again");
  study.run();
  study.options().use_template = false;
  study.options().study_id = study.store().add_study({.name = "exec",
                                                      .yaml_sha256 = std::string(64, '7'),
                                                      .resolved_json = "{}",
                                                      .cells = {again}});
  study.run();
  EXPECT_EQ(study.count("SELECT count(*) FROM steps a JOIN steps b USING(step, kind) WHERE "
                        "a.attempt_id<b.attempt_id AND a.loss_bits=b.loss_bits"),
            kSteps);
}

// ---- signals ----

/// Runs cells that hang, sends `signals` while they do; the exit code.
int stopped_by(FakeStudy& study, std::vector<int> signals) {
  study.options().keys.devices = 1;
  size_t sent = 0;
  const auto send = [&] {
    if (sent < signals.size()) raise(signals[sent++]);
  };
  struct Sender : Listener {
    std::function<void()> send{};
    void progressed(const RunView& run, const Totals& totals) override {
      Listener::progressed(run, totals);
      if (run.step == 1 && ++seen == 1) send();
    }
    void note(const std::string& text) override {
      Listener::note(text);
      if (text.find("Ctrl-C again") != std::string::npos) send();
    }
    int seen = 0;
  } listener;
  listener.send = send;
  const int code = Supervisor(study.store(), study.options(), listener).run().exit_code;
  study.listener().notes = listener.notes;
  return code;
}

TEST(Signals, FirstCtrlCFinishesWhatRuns) {
  FakeStudy study(cells(3, {{"step_ms", 20}}));
  EXPECT_EQ(stopped_by(study, {SIGINT}), 130);
  EXPECT_EQ(study.state(0), "ok");
  EXPECT_EQ(study.state(1), "none");
  EXPECT_THAT(study.listener().all_notes(), HasSubstr("Ctrl-C again ends them now"));
}

TEST(Signals, SecondCtrlCEndsWhatRuns) {
  FakeStudy study(cells(2, {{"behaviour", "hang"}}));
  EXPECT_EQ(stopped_by(study, {SIGINT, SIGINT}), 130);
  EXPECT_EQ(study.state(0), "killed");
  EXPECT_EQ(study.attempt(0, "reason"), "stopped by Ctrl-C, phase step, step 1");
}

TEST(Signals, ThirdCtrlCKillsAtOnce) {
  FakeStudy study(cells(2, {{"behaviour", "deaf"}}));
  study.options().patience.stop_grace = std::chrono::hours(1);
  EXPECT_EQ(stopped_by(study, {SIGINT, SIGINT, SIGINT}), 130);
  EXPECT_EQ(study.state(0), "killed");
}

TEST(Signals, AWorkerDeafToSigtermIsKilledAfterTheGrace) {
  FakeStudy study(cells(2, {{"behaviour", "deaf"}}));
  EXPECT_EQ(stopped_by(study, {SIGTERM}), 143);
  EXPECT_EQ(study.state(0), "killed");
  EXPECT_EQ(study.attempt(0, "reason"), "stopped by SIGTERM, phase step, step 1");
}

TEST(Signals, ResumeRunsTheRest) {
  FakeStudy study(cells(3, {{"step_ms", 20}}));
  stopped_by(study, {SIGINT});
  EXPECT_EQ(study.run().exit_code, 0);
  EXPECT_EQ(study.count("SELECT count(*) FROM attempts WHERE state='ok'"), 3);
}

// ---- two supervisors ----

/// A supervisor row of a process that lives: init.
void pretend_supervisor(FakeStudy& study, int pid) {
  const auto env = this_env("");
  study.store().add_env(env);
  study.store().start_supervisor({.study_id = study.options().study_id,
                                  .env_id = env.env_id,
                                  .boot_id = boot_id(),
                                  .pid = pid,
                                  .pid_start = process_start(pid)});
}

TEST(SecondSupervisor, IsRefusedWithPidAndStart) {
  FakeStudy study(cells(1));
  pretend_supervisor(study, 1);
  const std::string text = refusal(study);
  EXPECT_THAT(text, HasSubstr("error[H01]: this study is being run by another supervisor: pid 1, "
                              "started 2"));
  EXPECT_THAT(text, HasSubstr("--join"));
  study.options().join = true;
  EXPECT_EQ(study.run().exit_code, 0);
}

TEST(SecondSupervisor, AnotherProcessWithTheSamePidIsNoSupervisor) {
  FakeStudy study(cells(1));
  const auto env = this_env("");
  study.store().add_env(env);
  study.store().start_supervisor({.study_id = study.options().study_id,
                                  .env_id = env.env_id,
                                  .boot_id = boot_id(),
                                  .pid = 1,
                                  .pid_start = process_start(1) + 1});
  EXPECT_EQ(study.run().exit_code, 0);
  EXPECT_EQ(study.count("SELECT count(*) FROM supervisors WHERE end_reason='died'"), 1);
}

}  // namespace
}  // namespace assay::host
