// Hands a block its weights and sinks.
#include "core/train/model_runner.h"

namespace assay::train {
namespace {

class ModelRunner : public BlockRunner {
 public:
  ModelRunner(const Model& model, Ops& ops, std::vector<Parameter>& parameters)
      : model_(model), ops_(ops), parameters_(parameters) {}

  Tensor run(const BlockSpec& block, const BlockInput& input) override {
    std::vector<Weight> weights;
    for (const int w : block.weights) {
      Parameter& p = parameters_[static_cast<size_t>(w)];
      weights.push_back({&p.placement, p.weight, {}, &p.sink});
    }
    return model_.forward(block, input, weights, ops_);
  }

 private:
  const Model& model_;
  Ops& ops_;
  std::vector<Parameter>& parameters_;
};

}  // namespace

std::unique_ptr<BlockRunner> model_runner(const Model& model, Ops& ops,
                                          std::vector<Parameter>& parameters) {
  return std::make_unique<ModelRunner>(model, ops, parameters);
}

}  // namespace assay::train
