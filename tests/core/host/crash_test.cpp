// kill -9 of the supervisor at random points: nothing lost, nothing twice, nothing left running.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <random>
#include <thread>

#include "core/base/clock.h"
#include "core/host/recovery.h"
#include "tests/core/host/harness.h"

namespace assay::host {
namespace {

constexpr int kCells = 200;
constexpr int kKills = 50;
constexpr int kWorkers = 4;

/// A supervisor in a process of its own, as `assay resume` starts it.
pid_t start_supervisor(const SupervisorOptions& options, const std::filesystem::path& database) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  int code = 99;
  try {
    store::Store store(database);
    Observer silent;
    code = Supervisor(store, options, silent).run().exit_code;
  } catch (const std::exception& e) {
    fprintf(stderr, "supervisor: %s\n", e.what());
  }
  _exit(code);
}

/// Processes of ranks that still run, by the lists in the run folders.
int living_ranks(const std::filesystem::path& folder) {
  int living = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "runs")) {
    if (entry.path().filename() != "processes.json") continue;
    std::ifstream stream(entry.path());
    const auto list = nlohmann::json::parse(stream);
    for (const auto& rank : list) {
      const int pid = rank.at("pid").get<int>();
      living += runs(pid) && process_start(pid) == rank.at("pid_start").get<int64_t>();
    }
  }
  return living;
}

TEST(CrashSafety, FiftyRandomKillsOfTheSupervisor) {
  std::vector<store::Cell> cells;
  for (int i = 0; i < kCells; ++i) cells.push_back(fake_cell(i, {{"step_ms", 4}}));
  FakeStudy study(cells);
  SupervisorOptions options = study.options();
  options.keys.devices = kWorkers;
  const auto database = study.database();
  study.close_store();
  std::mt19937_64 random(20260101);
  int killed = 0;
  for (int i = 0; i < kKills; ++i) {
    options.use_template = i % 2 == 0;
    const pid_t pid = start_supervisor(options, database);
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + random() % 200));
    kill(pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, 0);
    killed += WIFSIGNALED(status);
    if (WIFEXITED(status)) {
      ASSERT_EQ(WEXITSTATUS(status), 0);
    }
  }
  const auto started = std::chrono::steady_clock::now();
  options.use_template = true;
  const pid_t pid = start_supervisor(options, database);
  int status = 0;
  waitpid(pid, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const double resumed_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();

  EXPECT_EQ(study.count("SELECT count(*) FROM runs"), kCells);
  EXPECT_EQ(study.count("SELECT count(*) FROM runs WHERE state='ok'"), kCells);
  EXPECT_EQ(study.count("SELECT count(*) FROM attempts WHERE state='running'"), 0) << "stale";
  EXPECT_EQ(study.count("SELECT count(*) FROM attempts WHERE state='ok'"), kCells) << "duplicates";
  EXPECT_EQ(study.count("SELECT count(*) FROM attempts WHERE state NOT IN('ok','killed')"), 0);
  EXPECT_EQ(study.count("SELECT count(*) FROM (SELECT attempt_id FROM attempts LEFT JOIN steps "
                        "USING(attempt_id) WHERE state='ok' GROUP BY attempt_id HAVING count(step)"
                        "<>" +
                        std::to_string(kSteps) + ")"),
            0)
      << "lost or doubled rows";
  EXPECT_EQ(study.count("SELECT count(*) FROM supervisors WHERE ended_us IS NULL"), 0);
  EXPECT_EQ(living_ranks(study.folder()), 0);
  std::cout << killed << " of " << kKills << " supervisors killed, "
            << study.count("SELECT count(*) FROM attempts WHERE state='killed'")
            << " attempts repeated, last resume " << resumed_s << " s\n";
}

TEST(CrashSafety, WorkersDieWithTheirSupervisor) {
  for (const bool use_template : {false, true}) {
    FakeStudy study({fake_cell(0, {{"behaviour", "hang"}, {"at_step", 1}})});
    SupervisorOptions options = study.options();
    options.use_template = use_template;
    study.close_store();
    const pid_t pid = start_supervisor(options, study.database());
    while (study.count("SELECT count(*) FROM attempts WHERE pid IS NOT NULL") == 0) {
      std::this_thread::yield();
    }
    const int rank = static_cast<int>(study.count("SELECT pid FROM attempts"));
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    while (runs(rank)) std::this_thread::yield();  // the test's time limit ends it
  }
}

}  // namespace
}  // namespace assay::host
