// The kernels of compile/fused against eager at the shapes of tiny, small and medium, forward and
// backward, with their rates over what the machine reaches at best in the same run.
//
//   bench_kernels [Google Benchmark options]      threads: OMP_NUM_THREADS
// Ends with lines TARGET|what|target|measured|yes or no for tools/bench: medians of ratios over
// interleaved pairs.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <benchmark/benchmark.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>

#include "interleaved.h"
#include "machine.h"
#include "product.h"
#include "tests/plugins/compile/op_stack.h"

namespace assay::fused {
namespace {

constexpr int64_t kBatch = 8, kSequence = 256, kTokens = kBatch * kSequence, kVocab = 272;
constexpr double kEps = 1e-5;

struct Flavour {
  const char* name;
  int64_t hidden, heads, kv_heads, ffn;
  int64_t head_dim() const { return hidden / heads; }
};
constexpr std::array<Flavour, 3> kFlavours{
    Flavour{"tiny", 128, 4, 2, 384}, {"small", 256, 8, 4, 768}, {"medium", 512, 8, 4, 1536}};

struct Machine {
  double bandwidth = 0, flops = 0;
};
Machine machine;

/// One operation: makes its inputs and gives its forward; the least bytes and the operations of
/// forward plus backward.
struct Operation {
  const char* name;
  std::function<std::function<Tensors()>(OpStack&, const Flavour&)> prepare;
  std::function<double(const Flavour&, double element)> bytes;
  std::function<double(const Flavour&)> flops;
};

const double kRows = static_cast<double>(kTokens);

using Forward = std::function<Tensors()>;

Tensor activations(OpStack& s, int64_t width, uint64_t i) {
  return s.input({kBatch, kSequence, width}, i);
}

Forward norm(OpStack& s, const Flavour& f) {
  return [&s, x = activations(s, f.hidden, 1), w = s.weight({f.hidden}, 2)] {
    return Tensors{s.ops().norm(x, w, kEps)};
  };
}
Forward rope(OpStack& s, const Flavour& f) {
  return [&s, x = activations(s, f.hidden, 1), spec = RopeSpec{.head_dim = f.head_dim()}] {
    return Tensors{s.ops().rope(x, {}, spec)};
  };
}
Forward swiglu(OpStack& s, const Flavour& f) {
  return [&s, in = Tensors{activations(s, f.ffn, 1), activations(s, f.ffn, 2)}] {
    return Tensors{s.ops().pointwise(Pointwise::swiglu, in)};
  };
}
Forward linear(OpStack& s, const Flavour& f) {
  return [&s, x = activations(s, f.hidden, 1),
          w = std::vector<Weight>{s.weight({f.ffn, f.hidden}, 2), s.weight({f.ffn, f.hidden}, 3)}] {
    return s.ops().linear(x, w);
  };
}
Forward attention(OpStack& s, const Flavour& f) {
  const int64_t kv = f.kv_heads * f.head_dim();
  const AttentionSpec spec{.head_dim = f.head_dim(), .scale = 0.2};
  return [&s, spec, q = activations(s, f.hidden, 1), k = activations(s, kv, 2),
          v = activations(s, kv, 3)] { return Tensors{s.ops().attention_part(q, k, v, spec).out}; };
}
Forward cross_entropy(OpStack& s, const Flavour& f) {
  const Tensor labels = at::arange(kTokens, at::kLong).remainder(kVocab).view({kBatch, kSequence});
  return [&s, labels, x = activations(s, f.hidden, 1), w = s.weight({kVocab, f.hidden}, 2)] {
    const auto stats = s.ops().ce_stats(x, w, labels);
    return Tensors{stats.sum_exp, stats.target};
  };
}

using F = const Flavour&;

const std::array<Operation, 6> kOperations{{
    {"norm", norm, [](F f, double e) { return 5 * kRows * f.hidden * e; }, nullptr},
    {"rope", rope, [](F f, double e) { return 4 * kRows * f.hidden * e; }, nullptr},
    {"swiglu", swiglu, [](F f, double e) { return 8 * kRows * f.ffn * e; }, nullptr},
    {"linear", linear, nullptr, [](F f) { return 2 * 6 * kRows * f.hidden * f.ffn; }},
    {"attention", attention, nullptr, [](F f) { return 7 * kRows * kSequence * f.hidden; }},
    {"cross_entropy", cross_entropy, nullptr, [](F f) { return 8 * kRows * f.hidden * kVocab; }},
}};

/// An operation with its inputs, ready to run forward and backward together, as training does.
class Trial {
 public:
  Trial(const Operation& op, const Flavour& flavour, bool fused, at::ScalarType dtype)
      : stack_(fused, dtype), forward_(op.prepare(stack_, flavour)) {
    seeds_ = stack_.seeds_of(OpStack::roots_of(forward_()));
  }
  void run() {
    torch::autograd::backward(OpStack::roots_of(forward_()), seeds_);
    stack_.forget_gradients();
  }

 private:
  OpStack stack_;
  Forward forward_;
  Tensors seeds_;
};

void measure(benchmark::State& state, const Operation& op, const Flavour& flavour, bool fused,
             at::ScalarType dtype) {
  Trial trial(op, flavour, fused, dtype);
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) trial.run();
  const double each = bench::seconds_since(start) / static_cast<double>(state.iterations());
  if (op.bytes) {
    const double rate = op.bytes(flavour, dtype == at::kFloat ? 4 : 2) / each;
    state.counters["GB/s"] = rate * 1e-9;
    state.counters["of_bandwidth"] = rate / machine.bandwidth;
  } else {
    const double rate = op.flops(flavour) / each;
    state.counters["Gflop/s"] = rate * 1e-9;
    if (machine.flops > 0) state.counters["of_peak"] = rate / machine.flops;
  }
}

void report_targets() {
  for (const Operation& op : kOperations) {
    Trial eager(op, kFlavours[0], false, at::kFloat), fused(op, kFlavours[0], true, at::kFloat);
    const double speedup = bench::ratio([&] { eager.run(); }, [&] { fused.run(); });
    std::printf("TARGET|fused %s, tiny, fp32, over eager|>= 1 x|%.2f x|%s\n", op.name, speedup,
                speedup >= 1 ? "yes" : "no");
  }
}

void register_all() {
  for (const Operation& op : kOperations) {
    for (const Flavour& flavour : kFlavours) {
      for (const auto dtype : {at::kFloat, at::kBFloat16}) {
        for (const bool fused : {true, false}) {
          const std::string name = std::string(op.name) + "/" + flavour.name +
                                   (dtype == at::kFloat ? "/fp32" : "/bf16") +
                                   (fused ? "/fused" : "/eager");
          benchmark::RegisterBenchmark(
              name.c_str(),
              [=](benchmark::State& state) { measure(state, op, flavour, fused, dtype); })
              ->Unit(benchmark::kMicrosecond)
              ->UseRealTime();
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay::fused

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  assay::fused::machine = {assay::bench::memory_bandwidth(), assay::bench::peak_flops()};
  std::printf("memory %.1f GB/s, fp32 peak %.1f Gflop/s\n", assay::fused::machine.bandwidth * 1e-9,
              assay::fused::machine.flops * 1e-9);
  assay::fused::register_all();
  benchmark::RunSpecifiedBenchmarks();
  assay::fused::report_targets();
  return 0;
}
