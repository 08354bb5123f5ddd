// The fused AdamW against the same update in plain LibTorch operations, at the parameters of the
// flavours tiny and small.
//
//   bench_adamw [Google Benchmark options]      threads: OMP_NUM_THREADS
// Ends with lines TARGET|what|target|measured|yes or no for tools/bench.
#include <ATen/ops/abs.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/max.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>
#include <benchmark/benchmark.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "adamw.h"
#include "fused_adamw.h"
#include "interleaved.h"

namespace assay::optim {
namespace {

struct Flavour {
  const char* name;
  int64_t layers, hidden, kv_width, ffn;
};
constexpr std::array<Flavour, 2> kFlavours{
    {{"tiny", 4, 128, 64, 384}, {"small", 6, 256, 128, 768}}};
constexpr int64_t kVocab = 272;

std::vector<Shape> shapes_of(const Flavour& f) {
  std::vector<Shape> shapes{{kVocab, f.hidden}, {f.hidden}, {kVocab, f.hidden}};
  for (int64_t layer = 0; layer < f.layers; ++layer) {
    for (const Shape& shape :
         {Shape{f.hidden}, Shape{f.hidden, f.hidden}, Shape{f.kv_width, f.hidden},
          Shape{f.kv_width, f.hidden}, Shape{f.hidden, f.hidden}, Shape{f.hidden},
          Shape{f.ffn, f.hidden}, Shape{f.ffn, f.hidden}, Shape{f.hidden, f.ffn}}) {
      shapes.push_back(shape);
    }
  }
  return shapes;
}

/// An optimizer with the parameters of a flavour, ready to step.
class Trial {
 public:
  Trial(const Flavour& flavour, const std::string& implementation)
      : optimizer_(options(implementation)) {
    for (const Shape& shape : shapes_of(flavour)) {
      ParameterShard shard;
      shard.master = wave(shape, 0.5);
      shard.grad = wave(shape, 1e-3);
      shard.state = {at::zeros(shape), at::zeros(shape)};
      shards_.push_back(std::move(shard));
    }
  }
  void run() { optimizer_.step(shards_, {.step = ++steps_, .lr = 1e-3}); }
  /// The largest difference of any weight.
  double difference(const Trial& other) const {
    double largest = 0;
    for (size_t i = 0; i < shards_.size(); ++i) {
      const at::Tensor apart = (shards_[i].master - other.shards_[i].master).abs().max();
      largest = std::max(largest, apart.item<double>());
    }
    return largest;
  }

 private:
  /// Values that differ from each other, the same in every trial.
  static at::Tensor wave(const Shape& shape, double scale) {
    return (at::arange(c10::multiply_integers(shape)).sin() * scale).reshape(shape);
  }

  static AdamWOptions options(const std::string& implementation) {
    AdamWOptions o;
    o.implementation = implementation;
    return o;
  }

  AdamW optimizer_;
  std::vector<ParameterShard> shards_;
  int64_t steps_ = 0;
};

/// False where the two do not agree: then no figure is printed.
bool report_target(const Flavour& flavour) {
  Trial plain(flavour, "plain"), fused(flavour, "fused");
  for (int step = 0; step < 3; ++step) {
    plain.run();
    fused.run();
  }
  if (plain.difference(fused) > 1e-6) {
    std::fprintf(stderr, "fused and plain AdamW give different weights at %s\n", flavour.name);
    return false;
  }
  const double speedup = bench::ratio([&] { plain.run(); }, [&] { fused.run(); });
  std::printf("TARGET|fused AdamW, %s, fp32, over plain|>= 1 x|%.2f x|%s\n", flavour.name, speedup,
              speedup >= 1 ? "yes" : "no");
  return true;
}

void register_all() {
  for (const Flavour& flavour : kFlavours) {
    for (const char* implementation : {"fused", "plain"}) {
      benchmark::RegisterBenchmark(
          (std::string("adamw/") + flavour.name + "/" + implementation).c_str(),
          [=](benchmark::State& state) {
            Trial trial(flavour, implementation);
            for (auto _ : state) trial.run();
          })
          ->Unit(benchmark::kMicrosecond)
          ->UseRealTime();
    }
  }
}

}  // namespace
}  // namespace assay::optim

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  assay::optim::register_fused_adamw();
  assay::optim::register_all();
  benchmark::RunSpecifiedBenchmarks();
  bool equal = true;
  for (const auto& flavour : assay::optim::kFlavours) {
    equal = assay::optim::report_target(flavour) && equal;
  }
  return equal ? 0 : 1;
}
