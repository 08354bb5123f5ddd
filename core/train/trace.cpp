// A block runner that looks and changes nothing.
#include "core/train/trace.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "core/intercept/op_observer.h"

namespace assay::train {
namespace {

class TraceRunner final : public BlockRunner {
 public:
  TraceRunner(std::unique_ptr<BlockRunner> next, Trace& trace)
      : next_(std::move(next)), trace_(trace) {}

  Tensor run(const BlockSpec& block, const BlockInput& input) override {
    if (!at::GradMode::is_enabled()) return next_->run(block, input);
    Tensor y = watched(block, input);
    if (!trace_.counts(block)) return y;
    trace_.add("forward " + block.name, y);
    if (y.requires_grad()) {
      y.register_hook([this, point = "backward " + block.name](const Tensor& gradient) {
        trace_.add(point, gradient);
      });
    }
    return y;
  }

 private:
  Tensor watched(const BlockSpec& block, const BlockInput& input) {
    if (trace_.level() != TraceLevel::ops) return next_->run(block, input);
    int number = 0;
    const intercept::OpObserverScope watching([&](intercept::OpCall& call) {
      const std::string name(call.name());
      call.run();
      for (const Tensor& output : call.outputs()) {
        if (!output.is_floating_point()) continue;
        trace_.add(fmt::format("op {} {:04} {}", block.name, number++, name), output);
      }
    });
    return next_->run(block, input);
  }

  std::unique_ptr<BlockRunner> next_;
  Trace& trace_;
};

}  // namespace

Trace::Trace(TraceLevel level, const RankContext& context, int64_t sequence_parts)
    : level_(level), context_(context), residual_is_cut_(sequence_parts > 1) {}

std::unique_ptr<BlockRunner> Trace::wrap(std::unique_ptr<BlockRunner> next) {
  return std::make_unique<TraceRunner>(std::move(next), *this);
}

void Trace::add(const std::string& point, const Tensor& value) {
  if (!value.defined() || value.is_meta()) return;
  const at::NoGradGuard no_grad;
  const Tensor wide = value.detach().to(at::kDouble);
  Digest& digest = points_[point];
  digest.sum += wide.sum().item<double>();
  digest.squares += wide.mul(wide).sum().item<double>();
}

// The head gives one loss to all tp ranks; the others do where the sequence is whole.
bool Trace::counts(const BlockSpec& block) const {
  if (context_.mesh.coordinate(MeshDim::tp) == 0) return true;
  return residual_is_cut_ && block.kind != BlockSpec::Kind::head;
}

}  // namespace assay::train
