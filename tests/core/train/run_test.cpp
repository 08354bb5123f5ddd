// run_cell: the rows it reports, and what ends a run early.
#include "core/train/run.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/intercept/host_allocator.h"
#include "recipes.h"

namespace assay::train {
namespace {

class Recorder : public Reporter {
 public:
  void row(const nlohmann::json& spool_row) override { rows.push_back(spool_row); }
  void phase(std::string_view name) override { phases.emplace_back(name); }
  void progress(int64_t step, int64_t, double, double, int64_t) override { last_step = step; }

  std::vector<nlohmann::json> of(const std::string& table) const {
    std::vector<nlohmann::json> found;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(found),
                 [&](const nlohmann::json& r) { return r.at("t") == table; });
    return found;
  }

  std::vector<nlohmann::json> rows;
  std::vector<std::string> phases;
  int64_t last_step = 0;
};

nlohmann::json cell_of(nlohmann::json config) {
  load_test_plugins();
  return {{"config", std::move(config)}, {"threads", 1}, {"memory_limit_bytes", nullptr}};
}

TEST(RunCell, ReportsEveryStepOnceInOrder) {
  Recorder recorder;
  run_cell(cell_of(small_config()), 0, recorder);
  std::vector<int64_t> steps;
  for (const auto& row : recorder.of("steps")) {
    if (row.at("kind") != "eval") steps.push_back(row.at("step"));
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(recorder.last_step, 5);
  EXPECT_EQ(recorder.phases.front(), "data");
  EXPECT_EQ(recorder.phases.back(), "done");
}

TEST(RunCell, StepRowsCarryTheTrainersOwnFigures) {
  Recorder recorder;
  run_cell(cell_of(small_config()), 0, recorder);
  auto trainer = make_trainer(small_config());
  for (const auto& row : recorder.of("steps")) {
    if (row.at("kind") == "eval") continue;
    const StepResult expected = trainer->step(row.at("step"));
    EXPECT_EQ(row.at("loss").get<double>(), expected.loss);
    EXPECT_EQ(row.at("grad_norm").get<double>(), expected.grad_norm);
    EXPECT_EQ(row.at("tokens"), 4 * 16);
    EXPECT_GT(row.at("wall_s").get<double>(), 0.0);
  }
}

TEST(RunCell, OperatorsOfTheSecondWarmUpStepAreCountedTheSameEveryTime) {
  const auto metrics_with = [](int64_t warmup_steps) {
    auto config = small_config();
    config["train"]["warmup_steps"] = warmup_steps;
    Recorder recorder;
    run_cell(cell_of(config), 0, recorder);
    std::map<std::string, double> metrics;
    for (const auto& row : recorder.of("metrics")) metrics[row.at("name")] = row.at("value");
    const auto facts = recorder.of("facts");
    if (facts.front().contains("operations")) metrics["operations"] = facts.front()["operations"];
    return metrics;
  };
  const auto first = metrics_with(2), again = metrics_with(2), timed = metrics_with(1);
  EXPECT_GT(first.at("operations"), 100);
  EXPECT_EQ(first.at("operations"), again.at("operations"));
  EXPECT_EQ(first.at("op_calls.aten::mm"), again.at("op_calls.aten::mm"));
  EXPECT_LE(first.at("op_s.aten::mm"), first.at("op_step_s"));
  EXPECT_FALSE(timed.contains("operations")) << "a timed step is not profiled";
}

TEST(RunCell, EvaluatesAtTheEndAndAtTheInterval) {
  auto config = small_config();
  config["train"]["eval_every"] = 2;
  Recorder recorder;
  run_cell(cell_of(config), 0, recorder);
  std::vector<int64_t> evaluated;
  for (const auto& row : recorder.of("steps")) {
    if (row.at("kind") == "eval") evaluated.push_back(row.at("step"));
  }
  EXPECT_EQ(evaluated, (std::vector<int64_t>{1, 3, 4}));
}

TEST(RunCell, MemoryCategoriesAddUpToThePeakOfTheirPhase) {
  Recorder recorder;
  run_cell(cell_of(small_config()), 0, recorder);
  ASSERT_FALSE(recorder.of("memory").empty());
  std::set<std::string> phases;
  for (const auto& memory : recorder.of("memory")) {
    EXPECT_TRUE(phases.insert(memory.at("phase")).second) << "one row per phase";
    int64_t sum = 0;
    for (const auto& part : recorder.of("memory_categories")) {
      if (part.at("phase") == memory.at("phase")) sum += part.at("bytes").get<int64_t>();
    }
    EXPECT_EQ(sum, memory.at("peak_allocated_bytes").get<int64_t>());
  }
}

TEST(RunCell, ANonFiniteLossIsReportedAndThenEndsTheRun) {
  auto config = small_config();
  config["precision"] = {{"name", "fp32"}};
  config["optim"]["lr"] = 1e30;
  config["train"]["max_norm"] = 0.0;
  Recorder recorder;
  try {
    run_cell(cell_of(config), 0, recorder);
    FAIL() << "the run went on";
  } catch (const InvalidRun& error) {
    EXPECT_NE(std::string(error.what()).find("not finite at step "), std::string::npos);
  }
  const auto last = recorder.of("steps").back();
  EXPECT_EQ(last.at("flags"), 16);
  EXPECT_LT(last.at("step"), 4);
}

TEST(RunCell, TheMemoryLimitEndsTheRunAsOutOfMemory) {
  auto cell = cell_of(small_config());
  intercept::install_host_allocator();
  cell["memory_limit_bytes"] = intercept::host_memory().allocated_bytes + (1 << 20);
  Recorder recorder;
  EXPECT_THROW(run_cell(cell, 0, recorder), c10::OutOfMemoryError);
  intercept::limit_host_memory(0);
}

TEST(RunCell, AnUnknownComponentOrOptionIsNamed) {
  auto config = small_config();
  config["optim"] = {{"name", "adamv"}, {"lr", 1e-3}};
  Recorder recorder;
  const auto message = [&](const nlohmann::json& c) -> std::string {
    try {
      run_cell(cell_of(c), 0, recorder);
    } catch (const Error& error) {
      return std::string(error.what()) + " " + error.hint();
    }
    return "accepted";
  };
  EXPECT_NE(message(config).find("adamw"), std::string::npos);
  config["optim"] = {{"name", "adamw"}, {"lr", 1e-3}, {"betta1", 0.9}};
  EXPECT_NE(message(config).find("betta1"), std::string::npos);
}

TEST(RunCell, CountsWhatATechniqueDid) {
  auto config = small_config();
  config["memory"] = {{"name", "selective_layer"}, {"every", 2}};
  Recorder engaged;
  run_cell(cell_of(config), 0, engaged);
  const auto counters = engaged.of("facts").back().at("counters");
  EXPECT_GT(counters.at("recompute.blocks").get<int64_t>(), 0);
}

TEST(HostAllocator, CountsWhatTensorsHoldAndReusesBlocks) {
  intercept::install_host_allocator();
  const auto before = intercept::host_memory();
  {
    const Tensor a = at::empty({1000}, at::kFloat);
    EXPECT_EQ(intercept::host_memory().allocated_bytes - before.allocated_bytes, 4000);
  }
  EXPECT_EQ(intercept::host_memory().allocated_bytes, before.allocated_bytes);
  const auto reserved = intercept::host_memory().reserved_bytes;
  { const Tensor b = at::empty({1000}, at::kFloat); }
  EXPECT_EQ(intercept::host_memory().reserved_bytes, reserved) << "a freed block serves again";
}

}  // namespace
}  // namespace assay::train
