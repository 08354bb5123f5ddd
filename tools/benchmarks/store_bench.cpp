// Benchmarks of the store: importing rows, 64 spools of 10,000 step records, a comparison's table.
// Each counter is a target of design.md section 7; rows lost and lock errors must be zero.
#include <benchmark/benchmark.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <thread>

#include "core/base/spool.h"
#include "core/report/formats.h"
#include "core/store/check.h"
#include "core/store/reader.h"
#include "core/store/spool_import.h"
#include "tests/core/store/sample_study.h"

namespace assay::store {
namespace {

constexpr int64_t kSpools = 64;
constexpr int64_t kRowsPerSpool = 10'000;

std::vector<nlohmann::json> step_rows(int64_t attempt_id, int64_t count) {
  std::vector<nlohmann::json> rows = {open_row(attempt_id)};
  for (int64_t step = 1; step <= count; ++step) rows.push_back(step_row(step));
  return rows;
}

/// Parsed rows to tables, in batches of the size of the supervisor's.
void import_rows(benchmark::State& state) {
  const TempFolder folder;
  SampleStore sample(folder / "a.db");
  int64_t slot = 2, rows_done = 0;
  const auto rows = step_rows(0, kRowsPerSpool);
  for (auto _ : state) {
    state.PauseTiming();
    sample.store.ensure_run(id64('a'), kMachine, "measure", 0, ++slot);
    const Claim claim = sample.claim().value();
    state.ResumeTiming();
    sample.store.import_rows(claim.attempt_id, 0, "spool", std::span(rows).subspan(1), 1);
    rows_done += kRowsPerSpool;
  }
  state.counters["rows_per_s"] =
      benchmark::Counter(static_cast<double>(rows_done), benchmark::Counter::kIsRate);
}
BENCHMARK(import_rows)->Unit(benchmark::kMillisecond);

void write_spool(const std::filesystem::path& file, int64_t attempt_id) {
  std::ofstream out(file, std::ios::binary);
  for (const auto& row : step_rows(attempt_id, kRowsPerSpool)) out << spool_line(row);
  out << spool_line({{"t", "close"}, {"rows", kRowsPerSpool + 1}, {"outcome", "ok"}});
}

/// A reader that asks again and again while it lives; it must never meet a lock.
class BusyReader {
 public:
  explicit BusyReader(const std::filesystem::path& file)
      : thread_([this, file](const std::stop_token& stop) {
          const Reader reader(file);
          while (!stop.stop_requested()) {
            try {
              reader.query("SELECT count(*) FROM spool_files WHERE rows_declared IS NOT NULL");
              ++reads_;
            } catch (const std::exception&) {
              ++errors_;
            }
          }
        }) {}
  int64_t reads() const { return reads_; }
  int64_t errors() const { return errors_; }

 private:
  std::atomic<int64_t> reads_ = 0, errors_ = 0;
  std::jthread thread_;
};

/// Files to tables, checksum and JSON included, while a reader counts.
void import_64_spools(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    const TempFolder folder;
    SampleStore sample(folder / "a.db");
    std::vector<Claim> claims;
    for (int64_t i = 0; i < kSpools; ++i) {
      sample.store.ensure_run(id64('a'), kMachine, "measure", 0, i + 2);
      claims.push_back(sample.claim().value());
      write_spool(folder / std::to_string(i), claims.back().attempt_id);
    }
    auto reader = std::make_unique<BusyReader>(sample.store.file());
    state.ResumeTiming();
    for (int64_t i = 0; i < kSpools; ++i) {
      import_spool(sample.store, claims[static_cast<size_t>(i)].attempt_id, 0,
                   folder / std::to_string(i));
    }
    state.PauseTiming();
    const int64_t lock_errors = reader->errors();
    reader.reset();
    const auto stored = *integer(sample.store.query("SELECT count(*) FROM steps").rows[0][0]);
    state.counters["lost"] = static_cast<double>(kSpools * kRowsPerSpool - stored);
    state.counters["lock_errors"] = static_cast<double>(lock_errors);
    sample.store.checkpoint();
    state.counters["bytes_per_row"] =
        static_cast<double>(std::filesystem::file_size(sample.store.file())) /
        static_cast<double>(stored);
    state.ResumeTiming();
  }
  state.counters["rows_per_s"] =
      benchmark::Counter(static_cast<double>(state.iterations() * kSpools * kRowsPerSpool),
                         benchmark::Counter::kIsRate);
}
BENCHMARK(import_64_spools)->Unit(benchmark::kMillisecond)->Iterations(1);

/// 64 threads write their spools as workers do, while the supervisor's loop imports what is there.
void import_64_spools_while_written(benchmark::State& state) {
  for (auto _ : state) {
    const TempFolder folder;
    SampleStore sample(folder / "a.db");
    std::vector<Claim> claims;
    for (int64_t i = 0; i < kSpools; ++i) {
      sample.store.ensure_run(id64('a'), kMachine, "measure", 0, i + 2);
      claims.push_back(sample.claim().value());
    }
    const BusyReader reader(sample.store.file());
    std::vector<std::jthread> writers;
    for (const Claim& claim : claims) {
      writers.emplace_back([&folder, id = claim.attempt_id] {
        SpoolWriter writer(folder.path(), {.attempt_id = id, .rank = 0, .cell_id = "x"});
        for (int64_t step = 1; step <= kRowsPerSpool; ++step) writer.append(step_row(step));
        writer.close("ok");
      });
    }
    for (size_t complete = 0; complete < claims.size();) {
      complete = 0;
      for (const Claim& claim : claims) {
        const auto file = spool_path(folder.path(), claim.attempt_id, 0);
        complete += import_spool(sample.store, claim.attempt_id, 0, file).position.complete();
      }
    }
    const auto stored = *integer(sample.store.query("SELECT count(*) FROM steps").rows[0][0]);
    state.counters["lost"] = static_cast<double>(kSpools * kRowsPerSpool - stored);
    state.counters["lock_errors"] = static_cast<double>(reader.errors());
    state.counters["reads"] = static_cast<double>(reader.reads());
    state.counters["damage"] = static_cast<double>(find_damage(sample.store.file()).size());
  }
}
BENCHMARK(import_64_spools_while_written)->Unit(benchmark::kMillisecond)->Iterations(1);

/// Opening a database and building the table of `assay compare` over 60 runs of 60 steps.
void compare_table(benchmark::State& state) {
  const TempFolder folder;
  SampleStore sample(folder / "a.db");
  for (int64_t slot = 2; slot < 22; ++slot) {
    for (const char id : {'a', 'b', 'c'})
      sample.store.ensure_run(id64(id), kMachine, "measure", 0, slot);
  }
  while (const auto claim = sample.claim()) {
    sample.store.import_rows(claim->attempt_id, 0, "spool", spool_rows(claim->attempt_id), 1);
    sample.store.finish_attempt(claim->attempt_id, {.state = "ok"});
  }
  for (auto _ : state) {
    const Reader reader(sample.store.file());
    benchmark::DoNotOptimize(report::terminal(report::build_model(reader, {})));
  }
}
BENCHMARK(compare_table)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace assay::store

BENCHMARK_MAIN();
