// One function per kind of row.
#include "core/train/records.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/clock.h"
#include "core/base/files.h"
#include "core/train/memory_bytes.h"

namespace assay::train {
namespace {

using nlohmann::json;

constexpr size_t kSlowest = 20;  ///< operators that are recorded by name
constexpr double kNano = 1e-9;

int64_t bits(double value) { return std::bit_cast<int64_t>(value); }

/// How often the kernel took a core from this process: other work ran beside it.
int64_t involuntary_switches() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

std::string checksum(const std::vector<ParameterShard>& shards) {
  std::vector<const ParameterShard*> sorted;
  for (const ParameterShard& s : shards) sorted.push_back(&s);
  std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->name < b->name; });
  std::string digests;
  for (const ParameterShard* s : sorted) {
    const Tensor bytes = s->master.contiguous();
    digests += s->name + sha256({static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes()});
  }
  return sha256(digests);
}

}  // namespace

Records::Records(Reporter& reporter, Assembly& assembly, int64_t first)
    : reporter_(reporter), a_(assembly), first_(first) {
  const BatchShape& batch = assembly.recipe.settings.batch;
  tokens_total_ = first * batch.global_batch * batch.seq_len;
}

void Records::step(int64_t number, const StepResult& r) {
  const bool finite = std::isfinite(r.loss) && std::isfinite(r.grad_norm);
  tokens_total_ += r.tokens;
  reporter_.row({{"t", "steps"},
                 {"step", number},
                 {"kind", number - first_ < a_.recipe.settings.warmup_steps ? "warmup" : "steady"},
                 {"flags", finite ? 0 : static_cast<int>(kLossNotFinite)},
                 {"end_us", now_us()},
                 {"wall_s", r.wall_s},
                 {"tokens", r.tokens},
                 {"tokens_total", tokens_total_},
                 {"loss", r.loss},
                 {"loss_bits", bits(r.loss)},
                 {"grad_norm", r.grad_norm},
                 {"grad_norm_bits", bits(r.grad_norm)},
                 {"lr", r.lr},
                 {"data_wait_s", r.data_wait_s},
                 {"comm_exposed_s", r.comm_exposed_s}});
  sample("forward_s", number, r.forward_s);
  sample("backward_s", number, r.backward_s);
  sample("optimizer_s", number, r.optimizer_s);
  for (const auto& [name, value] : r.metrics) sample(name.c_str(), number, value);
  if (r.virtual_step_s >= 0) sample("virtual_step_s", number, r.virtual_step_s);
}

// "trace.forward layers.3.sum": what assay diff reads.
void Records::trace(int64_t number) {
  if (!a_.trace) return;
  for (const auto& [point, digest] : a_.trace->points()) {
    sample(("trace." + point + ".sum").c_str(), number, digest.sum);
    sample(("trace." + point + ".squares").c_str(), number, digest.squares);
  }
}

void Records::evaluation(int64_t number, const EvalResult& r) {
  reporter_.row({{"t", "steps"},
                 {"step", number},
                 {"kind", "eval"},
                 {"flags", std::isfinite(r.loss) ? 0 : static_cast<int>(kLossNotFinite)},
                 {"end_us", now_us()},
                 {"wall_s", r.wall_s},
                 {"tokens", r.tokens},
                 {"tokens_total", tokens_total_},
                 {"loss", r.loss},
                 {"loss_bits", bits(r.loss)},
                 {"grad_norm", nullptr},
                 {"grad_norm_bits", nullptr},
                 {"lr", nullptr},
                 {"data_wait_s", nullptr},
                 {"comm_exposed_s", nullptr}});
  sample("eval_bytes_per_token", number, r.bytes_per_token);
}

void Records::checkpoint(int64_t number, double stall_s) {
  reporter_.row({{"t", "steps"},
                 {"step", number},
                 {"kind", "checkpoint"},
                 {"flags", 0},
                 {"end_us", now_us()},
                 {"wall_s", stall_s},
                 {"tokens", 0},
                 {"tokens_total", tokens_total_},
                 {"loss", nullptr},
                 {"loss_bits", nullptr},
                 {"grad_norm", nullptr},
                 {"grad_norm_bits", nullptr},
                 {"lr", nullptr},
                 {"data_wait_s", nullptr},
                 {"comm_exposed_s", nullptr}});
}

void Records::checkpoint_written(const SaveReport& report) {
  sample("checkpoint_bytes", report.step - 1, static_cast<double>(report.bytes));
  sample("checkpoint_write_s", report.step - 1, report.write_s);
}

void Records::sample(const char* name, int64_t step, double value) {
  reporter_.row({{"t", "samples"}, {"name", name}, {"step", step}, {"value", value}});
}

void Records::operators(const std::map<std::string, intercept::OpTotal>& totals, double step_s) {
  using Named = std::pair<std::string, intercept::OpTotal>;
  std::vector<Named> slowest(totals.begin(), totals.end());
  std::sort(slowest.begin(), slowest.end(),
            [](const Named& a, const Named& b) { return a.second.self_ns > b.second.self_ns; });
  operations_ = 0;
  for (const auto& [name, total] : slowest) *operations_ += total.calls;
  intercept::OpTotal rest{};
  for (size_t i = kSlowest; i < slowest.size(); ++i) {
    rest.calls += slowest[i].second.calls;
    rest.self_ns += slowest[i].second.self_ns;
  }
  slowest.resize(std::min(slowest.size(), kSlowest));
  if (rest.calls > 0) slowest.emplace_back("other", rest);
  for (const auto& [name, total] : slowest) {
    metric("op_s." + name, static_cast<double>(total.self_ns) * kNano, "s", "op.v1");
    metric("op_calls." + name, static_cast<double>(total.calls), "1", "op.v1");
  }
  metric("op_step_s", step_s, "s", "op.v1");
}

void Records::metric(const std::string& name, double value, const char* unit, const char* formula) {
  reporter_.row({{"t", "metrics"},
                 {"name", name},
                 {"value", value},
                 {"unit", unit},
                 {"formula_id", formula}});
}

void Records::memory(const std::string& phase) {
  const auto now = intercept::host_memory();
  auto& peak = peaks_[phase];
  peak.peak_bytes = std::max(peak.peak_bytes, now.peak_bytes);
  peak.peak_reserved_bytes = std::max(peak.peak_reserved_bytes, now.peak_reserved_bytes);
  intercept::reset_peak_host_memory();
}

void Records::activations(int64_t bytes) {
  activation_bytes_ = bytes;
  metric("saved_activation_bytes", static_cast<double>(bytes), "bytes", "ledger.v1");
}

void Records::memory_row(const std::string& phase, const intercept::HostMemory& peak) {
  reporter_.row({{"t", "memory"},
                 {"phase", phase},
                 {"peak_allocated_bytes", peak.peak_bytes},
                 {"peak_reserved_bytes", peak.peak_reserved_bytes},
                 {"peak_rss_bytes", intercept::peak_rss_bytes()},
                 {"limit_bytes", nullptr},
                 {"alloc_retries", 0}});
  categories(phase, peak.peak_bytes);
}

// Parameters, gradients and optimizer state are known exactly; activations come from the ledger;
// what is left of the peak is other (temporaries, batches, tables).
void Records::categories(const std::string& phase, int64_t peak) {
  const MemoryBytes known = memory_bytes(a_);
  int64_t rest = peak - known.parameters - known.gradients - known.optimizer;
  const int64_t saved = phase == "step" ? activation_bytes_ : 0;
  const int64_t activations = std::clamp<int64_t>(saved, 0, std::max<int64_t>(rest, 0));
  rest -= activations;
  const int64_t unsharded =
      std::clamp<int64_t>(phase == "step" ? known.unsharded : 0, 0, std::max<int64_t>(rest, 0));
  rest -= unsharded;
  const std::pair<const char*, int64_t> rows[] = {
      {"parameters", known.parameters}, {"gradients", known.gradients},
      {"optimizer", known.optimizer},   {"unsharded", unsharded},
      {"activations", activations},     {"other", rest}};
  for (const auto& [category, bytes] : rows) {
    reporter_.row(
        {{"t", "memory_categories"}, {"phase", phase}, {"category", category}, {"bytes", bytes}});
  }
}

void Records::finish(int64_t steps) {
  for (const auto& [phase, peak] : peaks_) {
    if (peak.peak_reserved_bytes > 0) memory_row(phase, peak);
  }
  for (const Traffic& t : a_.groups.traffic()) {
    reporter_.row({{"t", "collectives"},
                   {"grp", t.group},
                   {"op", t.op},
                   {"dtype", t.dtype},
                   {"phase", t.phase},
                   {"steps", steps},
                   {"count", t.count},
                   {"payload_bytes", t.payload_bytes},
                   {"wire_bytes", t.wire_bytes},
                   {"total_s", t.total_s},
                   {"exposed_s", t.exposed_s}});
  }
  json facts{
      {"t", "facts"},
      {"threads", at::get_num_threads()},
      {"involuntary_switches", involuntary_switches()},
      {"parameter_checksum", checksum(a_.shards)},
      {"numerics_only", a_.recipe.precision->numerics_only()},
      {"flops_per_token", a_.recipe.model->flops_per_token(a_.recipe.settings.batch.seq_len)}};
  facts["counters"] = a_.counters;
  if (operations_) facts["operations"] = *operations_;
  const auto of_model = a_.recipe.model->facts();
  if (of_model.contains("force_balance")) facts["force_balance"] = of_model.at("force_balance");
  reporter_.row(facts);
}

}  // namespace assay::train
