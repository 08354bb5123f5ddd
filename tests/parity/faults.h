// Parts that plant a mistake in an assembled recipe: gradient syncs and block runners around the
// real ones.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "assay/model.h"
#include "assay/parallel.h"

namespace assay::parity::fault {

/// A GradientSync around the real one.
class Around : public GradientSync {
 public:
  explicit Around(std::unique_ptr<GradientSync> inner) : inner_(std::move(inner)) {}
  bool arms(int64_t m, int64_t of) const override { return inner_->arms(m, of); }
  void ready(size_t parameter) override { inner_->ready(parameter); }
  void flush(std::span<const size_t> parameters) override { inner_->flush(parameters); }
  void wait() override { inner_->wait(); }

 protected:
  std::unique_ptr<GradientSync> inner_;
};

/// The gradient of one parameter stays what this rank's tokens gave.
class Dropping final : public Around {
 public:
  Dropping(std::unique_ptr<GradientSync> inner, Parameter& victim)
      : Around(std::move(inner)), victim_(victim) {}
  void wait() override {
    const Tensor own = victim_.sink.total().clone();
    inner_->wait();
    victim_.gradient.copy_(own);
  }

 private:
  Parameter& victim_;
};

/// Changes what a block is given.
class Runner : public BlockRunner {
 public:
  Runner(std::unique_ptr<BlockRunner> next,
         std::function<void(const BlockSpec&, BlockInput&)> before)
      : next_(std::move(next)), before_(std::move(before)) {}
  Tensor run(const BlockSpec& block, const BlockInput& input) override {
    BlockInput changed = input;
    before_(block, changed);
    return next_->run(block, changed);
  }

 private:
  std::unique_ptr<BlockRunner> next_;
  std::function<void(const BlockSpec&, BlockInput&)> before_;
};

}  // namespace assay::parity::fault
