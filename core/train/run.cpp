// The life of one rank: build, train, evaluate, report.
#include "core/train/run.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/clock.h"
#include "core/intercept/host_allocator.h"
#include "core/train/records.h"
#include "core/train/trainer.h"
#include "core/train/weights.h"

namespace assay::train {
namespace {

using nlohmann::json;

GroupSpec group_defaults(const json& cell) {
  GroupSpec spec;
  spec.rendezvous = cell.value("rendezvous", "");
  spec.timeout_ns = cell.value("collective_timeout_ns", spec.timeout_ns);
  return spec;
}

std::string step_text(int64_t step) { return "step " + std::to_string(step); }

// The step is reported first, so that the database shows where it went wrong.
void require_finite(int64_t step, const StepResult& result) {
  if (!std::isfinite(result.loss)) {
    throw InvalidRun("the loss is not finite at " + step_text(step),
                     "lower optim.lr, or look at the grad_norm of the steps before");
  }
  if (!std::isfinite(result.grad_norm)) {
    throw InvalidRun("the gradient norm is not finite at " + step_text(step),
                     "lower optim.lr, or look at the loss of the steps before");
  }
}

std::vector<std::string> promised_counters(const Recipe& recipe) {
  std::vector<std::string> names;
  const auto take = [&](const std::vector<std::string>& more) {
    names.insert(names.end(), more.begin(), more.end());
  };
  take(recipe.precision->engagement());
  take(recipe.memory->engagement());
  take(recipe.compile->engagement());
  for (const auto& [dim, strategy] : recipe.parallel) take(strategy->engagement());
  return names;
}

void require_engagement(Assembly& a) {
  for (const std::string& name : promised_counters(a.recipe)) {
    if (a.counters[name] > 0) continue;
    throw InvalidRun("a technique of this recipe did nothing [R-ENGAGE]: counter '" + name +
                     "' is 0 after the run");
  }
}

class Run {
 public:
  Run(Trainer& trainer, Reporter& reporter)
      : trainer_(trainer),
        settings_(trainer.assembly().recipe.settings),
        reporter_(reporter),
        records_(reporter, trainer.assembly()) {}

  void train() {
    reporter_.phase("step");
    records_.memory("init");
    for (int64_t step = 0; step < settings_.steps; ++step) {
      one_step(step);
      if (evaluates_after(step)) evaluate(step);
    }
    records_.memory("step");
    require_engagement(trainer_.assembly());
    records_.finish(settings_.steps);
    reporter_.phase("done");
  }

 private:
  // The ledger is open in the first step only: it is a warm-up step, and hooks cost time.
  void one_step(int64_t step) {
    const StepResult result = trainer_.step(step, step == 0);
    if (result.saved_activation_bytes >= 0) records_.activations(result.saved_activation_bytes);
    records_.step(step, result);
    records_.trace(step);
    require_finite(step, result);
    reporter_.progress(step + 1, settings_.steps,
                       static_cast<double>(result.tokens) / result.wall_s, result.loss,
                       intercept::host_memory().allocated_bytes);
  }

  bool evaluates_after(int64_t step) const {
    if (settings_.eval_batches <= 0) return false;
    const bool last = step + 1 == settings_.steps;
    return last || (settings_.eval_every > 0 && (step + 1) % settings_.eval_every == 0);
  }

  void evaluate(int64_t step) {
    records_.memory("step");
    reporter_.phase("eval");
    records_.evaluation(step, trainer_.evaluate(settings_.eval_batches));
    records_.memory("eval");
    reporter_.phase("step");
  }

  Trainer& trainer_;
  const TrainSettings& settings_;
  Reporter& reporter_;
  Records records_;
};

}  // namespace

void run_cell(const json& cell, int rank, Reporter& reporter) {
  intercept::install_host_allocator();
  if (cell.contains("memory_limit_bytes") && cell["memory_limit_bytes"].is_number()) {
    intercept::limit_host_memory(cell["memory_limit_bytes"]);
  }
  at::set_num_threads(cell.value("threads", 1));
  at::init_num_threads();
  reporter.phase("data");
  Recipe recipe = make_recipe(cell.at("config"));
  reporter.phase("build");
  Trainer trainer(assemble(std::move(recipe), rank, group_defaults(cell), at::kCPU));
  reporter.phase("init");
  const json train = cell.at("config").value("train", json::object());
  const std::string init_from = train.value("init_from", "");
  if (!init_from.empty()) import_weights(trainer.assembly(), init_from);
  Run(trainer, reporter).train();
  if (train.value("save_weights", false)) {
    const std::filesystem::path folder = cell.at("spool_dir").get<std::string>();
    export_weights(trainer.assembly(), folder / "model.safetensors");
  }
}

}  // namespace assay::train
