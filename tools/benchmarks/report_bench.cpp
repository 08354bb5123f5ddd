// Benchmarks of reports over 1,000 cells: loading the model, and the HTML page (target: under 2 s
// together, under 5 MB).
#include <benchmark/benchmark.h>

#include "core/report/formats.h"
#include "tests/core/report/large_study.h"

namespace assay::report {
namespace {

class Study {
 public:
  Study()
      : study_(folder_ / "a.db",
               {.optimizers = 10, .layouts = 10, .policies = 10, .steps = 60, .eval_every = 10}) {}
  Model model() const { return build_model(store::Reader(folder_ / "a.db"), {.samples = true}); }

 private:
  store::TempFolder folder_;
  LargeStudy study_;
};

const Study& study() {
  static const Study one;
  return one;
}

void load_1000_cells(benchmark::State& state) {
  study();
  for (auto _ : state) benchmark::DoNotOptimize(study().model());
}
BENCHMARK(load_1000_cells)->Unit(benchmark::kMillisecond);

void html_of_1000_cells(benchmark::State& state) {
  const Model model = study().model();
  size_t bytes = 0;
  for (auto _ : state) bytes = html(model).size();
  state.counters["bytes"] = static_cast<double>(bytes);
  state.counters["recipes"] = static_cast<double>(model.rows.size());
}
BENCHMARK(html_of_1000_cells)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace assay::report

BENCHMARK_MAIN();
