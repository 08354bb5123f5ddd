// Planning of a large grid on one core: the figure of design.md 7 is 10,000 cells in under a
// second.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <fstream>

#include "core/grid/plan.h"
#include "tests/core/grid/fake_components.h"

namespace {

namespace fs = std::filesystem;
using namespace assay;

/// 10 x 10 x 5 x 2 x 2 x 5 = 10,000 cells over real rules, two models and two optimizers.
constexpr const char* kStudy = R"(assay: 1
study: bench
base: {model: llama3, data: synthetic, train.global_batch: 64, parallel.tp: tp}
derive: {train.micro_batch: train.global_batch / 8}
grid:
  product:
    model.flavour: [tiny, small]
    optim.name: [adamw, lion]
    optim.lr: [1e-4, 2e-4, 3e-4, 4e-4, 5e-4, 6e-4, 7e-4, 8e-4, 9e-4, 1e-3]
    train.steps: [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
    memory: [none, full, selective_op, {name: selective_layer, every: 2}, {name: selective_layer, every: 3}]
seeds: [1, 2, 3, 4, 5]
)";

void plan_ten_thousand_cells(benchmark::State& state) {
  const fs::path file = fs::temp_directory_path() / "assay_plan_bench.yaml";
  std::ofstream(file) << kStudy;
  const grid::FakeComponents components;
  grid::PlanRequest request;
  request.file = file;
  request.machine = grid::fake_machine();
  request.binaries = grid::fake_binaries();
  request.hash_file = [](const fs::path&) { return std::string(64, '0'); };
  request.components = [&](const auto&) -> const grid::Components& { return components; };
  size_t cells = 0;
  for (auto _ : state) cells += grid::plan(request).cells.size();
  state.counters["cells"] = static_cast<double>(cells) / static_cast<double>(state.iterations());
  state.counters["cells/s"] =
      benchmark::Counter(static_cast<double>(cells), benchmark::Counter::kIsRate);
  fs::remove(file);
}
BENCHMARK(plan_ten_thousand_cells)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
