// GradientSink: runs or queues weight-gradient thunks and adds them up in the main-gradient dtype.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <utility>

#include "assay/error.h"
#include "assay/weight.h"
#include "core/train/product.h"

namespace assay {

void GradientSink::prepare(StepState* step, int uses, Shape shape, at::TensorOptions options,
                           std::function<void()> on_final) {
  step_ = step;
  uses_ = uses;
  shape_ = std::move(shape);
  options_ = options;
  on_final_ = std::move(on_final);
  total_ = Tensor();
  transient_ = true;
  reset();
}

void GradientSink::prepare(StepState* step, int uses, Tensor total,
                           std::function<void()> on_final) {
  prepare(step, uses, total.sizes().vec(), total.options(), std::move(on_final));
  total_ = std::move(total);
  transient_ = false;
}

void GradientSink::hold() {
  allocate();
  transient_ = false;
}

void GradientSink::release() {
  filled_ = false;
  if (transient_) total_ = Tensor();
}

void GradientSink::allocate() {
  if (!total_.defined()) total_ = at::empty(shape_, options_);
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
  if (on_final_) on_final_();
}

void GradientSink::add(Thunk gradient) {
  submit([this, gradient = std::move(gradient)] {
    const at::NoGradGuard no_grad;
    allocate();  // before: total() tells the thunk which shape and dtype is asked for
    const Tensor value = gradient();
    filled_ ? total_.add_(value) : total_.copy_(value);
    count_use();
  });
}

void GradientSink::add_product(Tensor dy, Tensor x) {
  submit([this, dy = std::move(dy), x = std::move(x)] {
    const at::NoGradGuard no_grad;
    allocate();
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
  if (!filled_ && !transient_) total_.zero_();
}

}  // namespace assay
