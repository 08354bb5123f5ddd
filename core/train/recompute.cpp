// One Region per execution of a block: records, forgets, replays.
#include "core/train/recompute.h"

#include <ATen/ThreadLocalState.h>
#include <ATen/core/grad_mode.h>

#include <utility>

#include "assay/error.h"
#include "core/intercept/op_observer.h"
#include "core/intercept/saved_hooks.h"
#include "core/train/ledger.h"

namespace assay::train {
namespace {

using intercept::OpCall;
using intercept::OpObserverScope;
using intercept::SavedHooksScope;

constexpr std::string_view kLinear = "assay::linear";

// Every operator named linear or grouped_linear with arguments (x, Tensor[] weights, ...) counts,
// so that 8-bit products keep the same set as assay::linear; weights of experts count once each.
bool is_linear(std::string_view op) {
  return (op.ends_with("::linear") || op.ends_with("::grouped_linear")) && op != "aten::linear";
}

class Region : public std::enable_shared_from_this<Region> {
 public:
  Region(std::function<Tensor(const Tensor&)> body, Tensor input, const MemoryPolicy& policy,
         Counters& counters)
      : body_(std::move(body)), input_(std::move(input)), policy_(policy), counters_(counters) {}

  Tensor forward() {
    if (Ledger* ledger = Ledger::current()) ledger->add(input_);
    const SavedHooksScope hooks(
        [self = shared_from_this()](const Tensor&) {
          return [self, index = self->packed_++] { return self->value(index); };
        },
        intercept::Packing::replays);
    if (!policy_.selective()) return body_(input_);
    const OpObserverScope watching([this](OpCall& call) { record(call); });
    number_ = 0;
    return body_(input_);
  }

 private:
  bool keeps(std::string_view op, int64_t number) {
    return policy_.op({.op = op, .linear_number = number}) == Keep::keep;
  }

  void keep(const Tensor& output) {
    kept_.push_back(output.detach());
    ++counters_["recompute.kept"];
    if (Ledger* ledger = Ledger::current()) ledger->add(output);
  }

  void record(OpCall& call) {
    const bool linear = is_linear(call.name());
    const bool kept = !linear && keeps(call.name(), -1);
    call.run();
    if (!linear && !kept) return;
    for (const Tensor& output : call.outputs()) {
      ++counters_["recompute.outputs"];
      if (!linear || keeps(kLinear, number_++)) keep(output);
    }
    if (kept) outputs_of_kept_.push_back(call.outputs().size());
  }

  // A kept output is handed out detached: autograd writes history onto the very tensor it receives.
  Tensor next_kept() { return kept_[next_kept_++].detach(); }

  void replay(OpCall& call) {
    if (is_linear(call.name())) return replay_linear(call);
    if (!keeps(call.name(), -1)) return call.run();
    Tensors outputs;
    for (size_t n = outputs_of_kept_[next_call_++]; n > 0; --n) outputs.push_back(next_kept());
    call.answer(outputs);
  }

  // One call may mix kept and recomputed weights: the kernel runs on the missing ones only.
  void replay_linear(OpCall& call) {
    Tensors outputs, missing;
    for (const Tensor& weight : call.list_argument(1)) {
      outputs.push_back(keeps(kLinear, number_++) ? next_kept() : Tensor());
      if (!outputs.back().defined()) missing.push_back(weight);
    }
    if (missing.empty()) return call.answer(outputs);
    call.set_list_argument(1, missing);
    call.run();
    if (missing.size() == outputs.size()) return;
    const Tensors computed = call.outputs();
    for (size_t i = 0, next = 0; i < outputs.size(); ++i) {
      if (!outputs[i].defined()) outputs[i] = computed[next++];
    }
    call.replace_output_list(outputs);
  }

  Tensor value(size_t index) {
    if (!std::exchange(recomputed_, true)) recompute();
    return std::move(values_[index]);  // each saved tensor is unpacked once
  }

  void recompute() {
    const at::ThreadLocalStateGuard as_in_forward(caller_);
    const at::AutoGradMode grad_on(true);
    {
      const SavedHooksScope hooks(
          [this](const Tensor& saved) {
            values_.push_back(saved.detach());
            return [] { return Tensor(); };
          },
          intercept::Packing::replays);
      const Tensor input = input_.detach().requires_grad_();
      if (policy_.selective()) {
        const OpObserverScope watching([this](OpCall& call) { replay(call); });
        number_ = 0;
        body_(input);
      } else {
        body_(input);
      }
    }
    ASSAY_CHECK(values_.size() == packed_, "recompute saved " + std::to_string(values_.size()) +
                                               " tensors, forward " + std::to_string(packed_));
    kept_.clear();
    input_ = Tensor();
  }

  std::function<Tensor(const Tensor&)> body_;
  Tensor input_;
  const MemoryPolicy& policy_;
  Counters& counters_;
  at::ThreadLocalState caller_;
  bool recomputed_ = false;
  size_t packed_ = 0, next_kept_ = 0, next_call_ = 0;
  int64_t number_ = 0;
  Tensors values_, kept_;
  std::vector<size_t> outputs_of_kept_;
};

class RecomputeRunner : public BlockRunner {
 public:
  RecomputeRunner(std::unique_ptr<BlockRunner> next, std::shared_ptr<const MemoryPolicy> policy,
                  const RankContext& context)
      : next_(std::move(next)), policy_(std::move(policy)), counters_(context.counters) {
    const auto blocks = context.model.blocks();
    for (const BlockSpec& block : blocks) {
      if (block.kind == BlockSpec::Kind::layer) ++layers_;
    }
  }

  Tensor run(const BlockSpec& block, const BlockInput& input) override {
    if (!at::GradMode::is_enabled() || policy_->block(block, layers_) == Keep::keep) {
      return next_->run(block, input);
    }
    ++counters_["recompute.blocks"];
    auto body = [this, block, input](const Tensor& x) {
      BlockInput again = input;
      again.x = x;
      return next_->run(block, again);
    };
    return std::make_shared<Region>(std::move(body), input.x, *policy_, counters_)->forward();
  }

 private:
  std::unique_ptr<BlockRunner> next_;
  std::shared_ptr<const MemoryPolicy> policy_;
  Counters& counters_;
  int64_t layers_ = 0;
};

}  // namespace

std::unique_ptr<BlockRunner> recompute_region(std::unique_ptr<BlockRunner> next,
                                              std::shared_ptr<const MemoryPolicy> policy,
                                              const RankContext& context) {
  return std::make_unique<RecomputeRunner>(std::move(next), std::move(policy), context);
}

}  // namespace assay::train
