// Classic mistakes of parallel training, planted one by one: the parity table sees every one.
#include <ATen/ops/roll.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "faults.h"
#include "layouts.h"

namespace assay::parity::fault {
namespace {

using nlohmann::json;

constexpr int64_t kSteps = 3;
constexpr double kSeen = 1e-6;  // the table allows 1e-10

/// What the parity table would notice: the largest distance that it bounds.
double noticed(const json& config, const Tamper& fault) {
  static const RankOutcome one = run(base_config(), kSteps).front();
  const Distance d = distance(run(config, kSteps, fault), one);
  return std::max({d.loss, d.norm, d.eval});
}

json ddp() { return layout("dp_replicate=2", {{"dp_replicate", {{"name", "ddp"}}}}); }
json fsdp() { return layout("dp_shard=2", {{"dp_shard", {{"name", "fsdp"}}}}); }
json tp() { return layout("tp=2", {{"tp", {{"name", "tp"}}}}); }

TEST(Faults, WithoutOneTheTableIsSatisfied) {
  for (const json& config : {ddp(), fsdp(), tp()}) EXPECT_LE(noticed(config, {}), 1e-10);
}

class Mean final : public Around {
 public:
  Mean(std::unique_ptr<GradientSync> inner, std::vector<Parameter>& parameters)
      : Around(std::move(inner)), parameters_(parameters) {}
  void wait() override {
    inner_->wait();
    for (Parameter& p : parameters_) p.gradient.div_(2);
  }

 private:
  std::vector<Parameter>& parameters_;
};

TEST(Faults, AMeanInsteadOfASum) {
  const Tamper mean = [](train::Assembly& a) {
    a.syncs.front() = std::make_unique<Mean>(std::move(a.syncs.front()), a.parameters);
  };
  EXPECT_GT(noticed(ddp(), mean), kSeen);
  EXPECT_GT(noticed(fsdp(), mean), kSeen);
}

TEST(Faults, ADroppedBucket) {
  json config = ddp();
  config["parallel"]["dp_replicate"]["overlap"] = false;  // the sum starts in wait() only
  EXPECT_GT(noticed(config,
                    [](train::Assembly& a) {
                      a.syncs.front() =
                          std::make_unique<Dropping>(std::move(a.syncs.front()), a.parameters[3]);
                    }),
            kSeen);
}

TEST(Faults, AShiftedLabel) {
  EXPECT_GT(noticed(tp(),
                    [](train::Assembly& a) {
                      a.runner = std::make_unique<Runner>(
                          std::move(a.runner), [](const BlockSpec&, BlockInput& input) {
                            input.labels = at::roll(input.labels, {1}, {1});
                          });
                    }),
            kSeen);
}

/// One layer computes with the weights that it had in the first step.
TEST(Faults, AStaleParameter) {
  const Tamper stale = [](train::Assembly& a) {
    auto first = std::make_shared<std::map<std::string, Tensor>>();
    // Innermost, where fsdp has made the weights whole.
    a.runner = std::make_unique<Runner>(std::move(a.runner),
                                        [first, &a](const BlockSpec& block, BlockInput&) {
                                          if (block.name != "layers.1") return;
                                          for (const int w : block.weights) {
                                            Parameter& p = a.parameters[static_cast<size_t>(w)];
                                            const auto found = first->find(p.spec.name);
                                            if (found == first->end()) {
                                              first->emplace(p.spec.name, p.master.clone());
                                            } else {
                                              p.master.copy_(found->second);
                                            }
                                          }
                                        });
  };
  EXPECT_GT(noticed(fsdp(), stale), kSeen);
}

TEST(Faults, NormGradientsThatAreNotSummedUnderSequenceParallelism) {
  EXPECT_GT(noticed(tp(),
                    [](train::Assembly& a) {
                      for (Parameter& p : a.parameters) p.placement.partial_over.reset();
                    }),
            kSeen);
}

}  // namespace
}  // namespace assay::parity::fault
