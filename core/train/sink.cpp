// GradientSink: runs or queues weight-gradient thunks and adds them up in the main-gradient dtype.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/mm.h>

#include <utility>

#include "assay/error.h"
#include "assay/weight.h"
#include "core/train/product.h"

namespace assay {

void GradientSink::prepare(StepState* step, int uses, Tensor total,
                           std::function<void()> on_final) {
  step_ = step;
  uses_ = uses;
  total_ = std::move(total);
  on_final_ = std::move(on_final);
  seen_ = 0;
  filled_ = false;
}

void GradientSink::submit(std::function<void()> run) {
  ASSAY_CHECK(step_ != nullptr, "a gradient sink is used before prepare()");
  if (step_->deferring) {
    step_->deferred.push_back(std::move(run));
  } else {
    run();
  }
}

void GradientSink::count_use() {
  filled_ = true;
  if (++seen_ < uses_) return;
  seen_ = 0;
  if (step_->armed && on_final_) on_final_();
}

void GradientSink::add(Thunk gradient) {
  submit([this, gradient = std::move(gradient)] {
    const at::NoGradGuard no_grad;
    const Tensor value = gradient();
    filled_ ? total_.add_(value) : total_.copy_(value);
    count_use();
  });
}

void GradientSink::add_product(Tensor dy, Tensor x) {
  submit([this, dy = std::move(dy), x = std::move(x)] {
    const at::NoGradGuard no_grad;
    if (dy.scalar_type() != total_.scalar_type()) {
      const Tensor value = train::product(dy.t(), x);
      filled_ ? total_.add_(value) : total_.copy_(value);
    } else if (filled_) {
      total_.addmm_(dy.t(), x);
    } else {
      at::mm_out(total_, dy.t(), x);
    }
    count_use();
  });
}

void GradientSink::reset() {
  filled_ = false;
  seen_ = 0;
}

void GradientSink::finish() {
  if (!filled_) total_.zero_();
}

}  // namespace assay
