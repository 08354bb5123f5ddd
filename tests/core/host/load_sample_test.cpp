// Counters of a made-up machine before and after a run.
#include "core/host/load_sample.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace assay::host {
namespace {

class LoadSampleTest : public testing::Test {
 protected:
  LoadSampleTest()
      : root_(std::filesystem::temp_directory_path() / ("assay-load-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(root_ / "proc/pressure");
  }
  ~LoadSampleTest() override { std::filesystem::remove_all(root_); }
  void write(const std::string& file, const std::string& text) {
    std::ofstream(root_ / file) << text;
  }
  static std::optional<double> value(const std::vector<store::Metric>& figures,
                                     const std::string& name) {
    for (const store::Metric& m : figures) {
      if (m.name == name) return m.value;
    }
    return std::nullopt;
  }
  const std::filesystem::path root_;
};

TEST_F(LoadSampleTest, SharesOfTheTimeBetween) {
  write("proc/stat", "cpu  100 0 50 800 0 0 0 10 0 0\ncpu0 1 2 3\n");
  write("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n");
  write("proc/cpuinfo", "cpu MHz\t\t: 2000.0\ncpu MHz\t\t: 2400.0\n");
  LoadSample before = sample_load(root_);
  write("proc/stat", "cpu  190 0 50 800 0 0 0 20 0 0\n");
  write("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n");
  LoadSample after = sample_load(root_);
  before.at_s = 100;
  after.at_s = 102;
  const auto figures = load_figures(before, after);
  EXPECT_DOUBLE_EQ(value(figures, "steal_share").value(), 0.1);
  EXPECT_DOUBLE_EQ(value(figures, "cpu_pressure_share").value(), 0.25);
  EXPECT_DOUBLE_EQ(value(figures, "clock_hz").value(), 2.2e9);
}

TEST_F(LoadSampleTest, WhatTheKernelDoesNotExposeHasNoFigure) {
  EXPECT_TRUE(load_figures(sample_load(root_), sample_load(root_)).empty());
  write("proc/stat", "intr 1 2 3\n");
  EXPECT_FALSE(sample_load(root_).cpu_ticks);
}

TEST_F(LoadSampleTest, ThisMachineHasCounters) { EXPECT_TRUE(sample_load().cpu_ticks); }

}  // namespace
}  // namespace assay::host
