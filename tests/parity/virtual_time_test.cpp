// Virtual step time of pipelines whose actions take known times: the closed forms of recipes 2.9.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "core/schedule/simulate.h"
#include "core/train/trainer.h"
#include "core/train/virtual_time.h"
#include "layouts.h"

namespace assay::parity::virtual_time {
namespace {

using nlohmann::json;

constexpr int64_t kMicrobatches = 8;
constexpr ChunkTimes kTimes{.forward = 2, .input = 3, .weight = 1};

json pipeline(const std::string& schedule, int64_t ranks, int64_t chunks) {
  json config = base_config();
  config["model"]["layers"] = 8;
  return layout("pp=" + std::to_string(ranks),
                {{"pp", {{"name", "pp"}, {"schedule", schedule}, {"v", chunks}}}}, config);
}

double seconds(ActionKind kind, double transfer) {
  switch (kind) {
    case ActionKind::forward:
      return kTimes.forward;
    case ActionKind::backward:
      return kTimes.backward();
    case ActionKind::backward_input:
      return kTimes.input;
    case ActionKind::backward_weight:
      return kTimes.weight;
    default:
      return transfer;
  }
}

struct Measured {
  double virtual_s = 0;  ///< the largest of the ranks'
  double spread = 0;     ///< between ranks
  double transfers = 0;  ///< that the busiest rank spends beside computing
};

/// Every rank reports those times for its actions, and `transfer` for each that does not compute.
Measured measure(const json& config, double transfer) {
  const auto ranks = config["mesh"]["pp"].get<size_t>();
  std::vector<double> results(ranks), transfers(ranks);
  on_ranks(config, [&](train::Trainer& trainer) {
    train::Assembly& a = trainer.assembly();
    std::vector<double> times;
    double beside = 0;
    for (const Action& action : a.actions()) {
      times.push_back(seconds(action.kind, transfer));
      if (!is_compute(action.kind)) beside += transfer;
    }
    const auto rank = static_cast<size_t>(a.mesh.rank());
    results[rank] = train::virtual_step_s(a, times);
    transfers[rank] = beside;
  });
  const auto [low, high] = std::ranges::minmax(results);
  return {high, high - low, *std::ranges::max_element(transfers)};
}

struct Row {
  const char* schedule;
  int64_t ranks, chunks;
  double makespan;
};

TEST(VirtualTime, IsTheClosedFormOfItsSchedule) {
  constexpr double f = kTimes.forward, i = kTimes.input, w = kTimes.weight, b = i + w;
  constexpr double m = kMicrobatches;
  for (const Row& row :
       {Row{"gpipe", 2, 1, (m + 1) * (f + b)}, Row{"gpipe", 4, 1, (m + 3) * (f + b)},
        Row{"1f1b", 2, 1, (m + 1) * (f + b)}, Row{"1f1b", 4, 1, 66},
        Row{"interleaved_1f1b", 4, 2, 114}, Row{"interleaved_zb", 2, 1, m * (f + b) + (f + i - w)},
        Row{"interleaved_zb", 4, 1, 60}, Row{"interleaved_zb", 4, 2, 108}}) {
    SCOPED_TRACE(row.schedule + (" on " + std::to_string(row.ranks)));
    const Measured measured = measure(pipeline(row.schedule, row.ranks, row.chunks), 0);
    EXPECT_DOUBLE_EQ(measured.virtual_s, row.makespan);
    EXPECT_EQ(measured.spread, 0) << "every rank reports the same";
  }
}

TEST(VirtualTime, TransfersCountToTheComputationsBesideThem) {
  const json config = pipeline("1f1b", 4, 1);
  const double without = measure(config, 0).virtual_s;
  const Measured with = measure(config, 0.01);
  EXPECT_GT(with.virtual_s, without);
  EXPECT_GE(with.virtual_s, kMicrobatches * (kTimes.forward + kTimes.backward()) + with.transfers);
  EXPECT_LE(with.virtual_s, without + 4 * with.transfers);
}

TEST(VirtualTime, IsMeasuredInPipelinesOnly) {
  std::atomic<int> checked{0};
  on_ranks(pipeline("1f1b", 2, 1), [&](train::Trainer& trainer) {
    const train::StepResult step = trainer.step(0);
    EXPECT_GT(step.virtual_step_s, 0);
    ++checked;
  });
  EXPECT_EQ(checked, 2);
  on_ranks(base_config(), [](train::Trainer& trainer) {
    EXPECT_EQ(trainer.step(0).virtual_step_s, -1) << "without a pipeline there is none";
  });
}

}  // namespace
}  // namespace assay::parity::virtual_time
