// The parts of the supervisor that need no worker: logs, disk, locks, machine facts, filters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "assay/error.h"
#include "core/base/diagnostic.h"
#include "core/base/files.h"
#include "core/host/device_lock.h"
#include "core/host/disk.h"
#include "core/host/filter.h"
#include "core/host/log_file.h"
#include "core/host/machine.h"
#include "core/host/study.h"

namespace assay::host {
namespace {

using testing::HasSubstr;

class Folder : public testing::Test {
 protected:
  Folder()
      : path_(std::filesystem::temp_directory_path() /
              ("assay-parts-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() override { std::filesystem::remove_all(path_); }
  const std::filesystem::path path_;
};

TEST_F(Folder, LogKeepsHeadAndTailAndSaysWhatIsGone) {
  const LogLimits limits{.head_bytes = 4, .tail_bytes = 6};
  const std::string text = "0123456789abcdefghij";
  for (size_t block = 1; block <= text.size(); ++block) {  // however it arrives
    for (size_t length = 0; length <= text.size(); ++length) {
      LogFile log(path_ / "log", limits);
      const std::string printed = text.substr(0, length);
      for (size_t at = 0; at < length; at += block) log.append(printed.substr(at, block));
      log.finish();
      const std::string expected =
          length <= 10 ? printed
                       : printed.substr(0, 4) + "\n[assay: " + std::to_string(length - 10) +
                             " bytes dropped here]\n" + printed.substr(length - 6);
      ASSERT_EQ(read_file(path_ / "log"), expected) << length << " bytes in blocks of " << block;
      EXPECT_EQ(log.total_bytes(), static_cast<int64_t>(length));
    }
  }
}

TEST_F(Folder, LogTellsAFullDisk) {
  std::filesystem::create_symlink("/dev/full", path_ / "full");
  LogFile log(path_ / "full");
  EXPECT_THROW(log.append("x"), InfrastructureError);
}

TEST_F(Folder, LittleSpaceIsRefusedWithAWayOut) {
  EXPECT_NO_THROW(require_space(path_, kMinimumFreeBytes, 0));
  try {
    require_space(path_, kMinimumFreeBytes - 1, 0);
    ADD_FAILURE();
  } catch (const DiagnosticError& e) {
    EXPECT_EQ(e.diagnostics().front().id, "H03");
    EXPECT_THAT(e.diagnostics().front().hints.front(), HasSubstr("--db"));
  }
}

TEST_F(Folder, BallastIsRealSpaceAndGoesAtTheEnd) {
  {
    Ballast ballast(path_);
    struct stat info {};
    ASSERT_EQ(stat((path_ / ".ballast").c_str(), &info), 0);
    EXPECT_GE(info.st_blocks * 512, kBallastBytes);
  }
  EXPECT_FALSE(std::filesystem::exists(path_ / ".ballast"));
}

TEST_F(Folder, DeviceLockIsExclusiveAndNamesItsHolder) {
  DeviceLock first(path_, "cpu"), second(path_, "cpu"), other(path_, "gpu");
  EXPECT_TRUE(first.try_acquire(DeviceLock::Mode::exclusive));
  EXPECT_FALSE(second.try_acquire(DeviceLock::Mode::exclusive));
  EXPECT_FALSE(second.try_acquire(DeviceLock::Mode::shared));
  EXPECT_EQ(second.holder(), "pid " + std::to_string(getpid()));
  EXPECT_TRUE(other.try_acquire(DeviceLock::Mode::exclusive));
  first.release();
  EXPECT_TRUE(second.try_acquire(DeviceLock::Mode::shared));
  EXPECT_TRUE(first.try_acquire(DeviceLock::Mode::shared));
}

TEST(MachineFacts, CpuLists) {
  EXPECT_THAT(parse_cpu_list("0-2,5"), testing::ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(parse_cpu_list("7"), testing::ElementsAre(7));
  EXPECT_THAT(parse_cpu_list(""), testing::IsEmpty());
  EXPECT_THAT(parse_cpu_list("x,3-4"), testing::ElementsAre(3, 4));
}

TEST(MachineFacts, IdsAreStableAndTellMachinesApart) {
  const store::Env env = this_env("2.11.0");
  EXPECT_EQ(env.env_id, this_env("2.11.0").env_id);
  EXPECT_EQ(env.machine_id.size(), 64u);
  EXPECT_NE(env.machine_id, this_env("2.12.0").machine_id);
  EXPECT_GT(*env.ram_bytes, 0);
  EXPECT_FALSE(physical_cores().empty());
}

TEST(World, IsTheMeshWithoutExperts) {
  EXPECT_EQ(world_of(nlohmann::json::parse(R"({"mesh":{"tp":2,"dp_shard":3,"ep":4}})")), 6);
  EXPECT_EQ(world_of(nlohmann::json::object()), 1);
}

TEST(RunKeys, TravelThroughTheDatabase) {
  const auto keys = run_keys(
      R"({"execution":{"timeout_ns":5,"step_timeout_ns":4,"retries":1,"devices":3,"timed":false,"memory_limit_bytes":9}})");
  EXPECT_EQ(keys.timeout_ns, 5);
  EXPECT_EQ(keys.step_timeout_ns, 4);
  EXPECT_EQ(keys.retries, 1);
  EXPECT_EQ(keys.devices, 3);
  EXPECT_FALSE(keys.timed);
  EXPECT_EQ(keys.memory_limit_bytes, 9);
  EXPECT_TRUE(run_keys("{}").timed);
}

class Filter : public testing::Test {
 protected:
  const std::string config_ = R"({"memory":{"name":"full"},"mesh":{"tp":2},"optim":{"lr":0.1}})";
  bool holds(const std::string& text) {
    return run_filter(text, {config_})({.config_json = config_});
  }
  std::string error(const std::string& text) {
    try {
      holds(text);
      return "";
    } catch (const DiagnosticError& e) {
      return e.what();
    }
  }
};

TEST_F(Filter, ReadsKeysOfTheConfiguration) {
  EXPECT_TRUE(holds("mesh.tp == 2 and memory.name == 'full'"));
  EXPECT_TRUE(holds("memory == 'full'"));
  EXPECT_FALSE(holds("optim.lr > 0.5"));
}

TEST_F(Filter, MistakesAreNamed) {
  EXPECT_THAT(error("mesh.tq == 2"), HasSubstr("no cell of the study has a key 'mesh.tq'"));
  EXPECT_THAT(error("mesh.tq == 2"), HasSubstr("'mesh.tp'"));
  EXPECT_THAT(error("mesh.tp == "), HasSubstr("G16"));
}

}  // namespace
}  // namespace assay::host
