// What assay's design costs: its training step against the same model written by hand in one file
// (plain_llama.cpp), and the time that one operation spends in the seams.
//
//   bench_design [Google Benchmark options]      threads: OMP_NUM_THREADS
// Ends with lines TARGET|what|target|measured|yes or no for tools/bench.
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <benchmark/benchmark.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "assay/ops.h"
#include "core/evidence/pair_test.h"
#include "core/sdk/loader.h"
#include "core/train/trainer.h"
#include "interleaved.h"
#include "plain_llama.h"

namespace assay::bench {
namespace {

constexpr int kPairs = 20, kStepsPerRun = 10;

nlohmann::json configuration() {
  using nlohmann::json;
  const json nothing = json::object();
  return {{"model",
           {{"name", "llama3"}, {"flavour", "tiny"}, {"seq_len", 128}, {"rope_scaling", "none"}}},
          {"data", {{"name", "synthetic"}}},
          {"mesh", nothing},
          {"parallel", nothing},
          {"memory", {{"name", "none"}}},
          {"precision", {{"name", "fp32"}}},
          {"optim", {{"name", "adamw"}, {"lr", PlainOptions{}.lr}}},
          {"compile", {{"name", "eager"}}},
          {"comm", {{"name", "shm"}}},
          {"train",
           {{"steps", 1000},
            {"global_batch", 8},
            {"micro_batch", 8},
            {"max_norm", PlainOptions{}.max_norm},
            {"warmup", 0},
            {"schedule", "constant"},
            {"eval_batches", 1}}},
          {"seed", 1}};
}

void load_plugins_of_the_build() {
  const std::filesystem::path folder =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../lib/assay/plugins";
  std::vector<std::filesystem::path> files;
  for (const char* name :
       {"llama3", "data_synthetic", "adamw", "precision_fp32", "memory_none", "compile_eager"}) {
    files.push_back(folder / (std::string(name) + ".assay.so"));
  }
  load_plugins(files);
}

/// The same run twice: through assay, and by hand.
class Twins {
 public:
  Twins() : trainer_(train::assemble(train::make_recipe(configuration()), 0, {}, at::kCPU)) {
    std::map<std::string, Tensor> weights;
    for (const Parameter& p : trainer_.assembly().parameters) weights[p.spec.name] = p.master;
    const auto facts = trainer_.assembly().recipe.model->facts();
    plain_ = std::make_unique<PlainLlama>(
        weights, PlainOptions{.layers = facts.at("layers"), .head_dim = facts.at("head_dim")});
  }

  /// Seconds of one step without its data; the loss goes to `loss`.
  double through_assay(double& loss) {
    const train::StepResult step = trainer_.step(assay_steps_++);
    loss = step.loss;
    return step.wall_s - step.data_wait_s;
  }
  double by_hand(double& loss) {
    const train::Microbatch batch = trainer_.batches().train(plain_steps_++).microbatches.at(0);
    return seconds([&] { loss = plain_->step(batch.ids, batch.labels, plain_steps_); });
  }

  /// Relative difference of the losses after some steps of both.
  double difference() {
    double a = 0, b = 0;
    for (int i = 0; i < 5; ++i) {
      through_assay(a);
      by_hand(b);
    }
    return std::abs(a - b) / b;
  }

 private:
  train::Trainer trainer_;
  std::unique_ptr<PlainLlama> plain_;
  int64_t assay_steps_ = 0, plain_steps_ = 0;
};

using Step = double (Twins::*)(double&);

/// Near-best step time of a few steps, as evidence takes it (p10).
double run(Twins& twins, Step step) {
  std::vector<double> times;
  double loss = 0;
  for (int i = 0; i < kStepsPerRun; ++i) times.push_back((twins.*step)(loss));
  return quantile(std::move(times), 0.1);
}

std::vector<double> log_ratios(Twins& twins) {
  std::vector<double> d;
  for (int pair = 0; pair < kPairs; ++pair) {
    double hand = 0, assay = 0;
    if (pair % 2 == 0) hand = run(twins, &Twins::by_hand);
    assay = run(twins, &Twins::through_assay);
    if (pair % 2 != 0) hand = run(twins, &Twins::by_hand);
    d.push_back(std::log(assay / hand));
  }
  return d;
}

/// False where the two do not compute the same: then nothing is timed.
bool report_step() {
  Twins twins;
  const double difference = twins.difference();
  if (difference > 1e-5) {
    std::fprintf(stderr, "assay and the hand-written step differ in loss by %.1e\n", difference);
    return false;
  }
  const auto verdict = evidence::judge_pairs(log_ratios(twins), evidence::PairRule{});
  const auto interval = verdict.change_interval().value_or(evidence::Interval{});
  const bool met = verdict.call == evidence::Call::same || verdict.call == evidence::Call::faster;
  std::printf(
      "TARGET|step through assay over hand-written, tiny, fp32, 20 pairs|SAME at 1 %%|"
      "%s, %+.1f %% [%+.1f, %+.1f]|%s\n",
      evidence::name_of(verdict.call), 100 * verdict.change().value_or(0), 100 * interval.low,
      100 * interval.high, met ? "yes" : "no");
  return true;
}

/// One norm of eight numbers, forward and backward: almost nothing but the way to the kernels.
class SmallNorm {
 public:
  SmallNorm() {
    for (int i = 0; i < kLayers; ++i) ops_ = std::make_unique<OpsLayer>(std::move(ops_));
    sink_.prepare(&step_, 1, at::zeros({8}), [] {});
  }
  void through_assay() {
    const Tensor y = ops_->norm(x_, {&placement_, scale_, {}, &sink_}, 1e-5);
    torch::autograd::backward({y}, {dy_});
    sink_.reset();
    x_.mutable_grad() = Tensor();
  }
  void by_hand() {
    const Tensor y = plain_norm(x_, leaf_, 1e-5);
    torch::autograd::backward({y}, {dy_});
    x_.mutable_grad() = leaf_.mutable_grad() = Tensor();
  }
  bool agree() {
    const Tensor y = ops_->norm(x_, {&placement_, scale_, {}, &sink_}, 1e-5);
    const Tensor hand = plain_norm(x_, leaf_, 1e-5);
    sink_.reset();
    return (y - hand).abs().max().item<double>() < 1e-6;
  }

 private:
  static constexpr int kLayers = 3;  // parallel, precision and compile add one each
  std::unique_ptr<Ops> ops_ = make_eager_ops();
  ParameterPlacement placement_{
      ParameterSpec{.name = "scale", .shape = {8}, .axes = {{Axis::hidden}}}};
  StepState step_;
  GradientSink sink_;
  Tensor x_ = at::full({1, 1, 8}, 0.5).requires_grad_(), dy_ = at::full({1, 1, 8}, 1.0);
  Tensor scale_ = at::full({8}, 1.0), leaf_ = at::full({8}, 1.0).requires_grad_();
};

template <class Body>
void repeat(benchmark::State& state, Body body) {
  SmallNorm norm;
  for (auto _ : state) (norm.*body)();
}

/// False where the two do not agree: then no figure is printed.
bool report_dispatch() {
  constexpr int kCalls = 2000;
  SmallNorm norm;
  if (!norm.agree()) {
    std::fprintf(stderr, "the operation and its hand-written form give different values\n");
    return false;
  }
  std::vector<double> extra;
  for (int round = 0; round < 15; ++round) {
    const auto many = [&](void (SmallNorm::*body)()) {
      return seconds([&] {
        for (int i = 0; i < kCalls; ++i) (norm.*body)();
      });
    };
    const double assay = many(&SmallNorm::through_assay), hand = many(&SmallNorm::by_hand);
    extra.push_back((assay - hand) / kCalls * 1e9);
  }
  std::printf(
      "TARGET|dispatch of an operation, forward and backward, over hand-written|shown|"
      "%.0f ns|shown\n",
      quantile(std::move(extra), 0.5));
  return true;
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  using namespace assay::bench;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RegisterBenchmark("small_norm/assay", [](benchmark::State& state) {
    repeat(state, &SmallNorm::through_assay);
  });
  benchmark::RegisterBenchmark("small_norm/hand",
                               [](benchmark::State& state) { repeat(state, &SmallNorm::by_hand); });
  benchmark::RunSpecifiedBenchmarks();
  load_plugins_of_the_build();
  const bool steps_equal = report_step(), norms_equal = report_dispatch();
  return steps_equal && norms_equal ? 0 : 1;
}
