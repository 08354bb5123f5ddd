// The life of one rank: build, train, evaluate, report.
#include "core/train/run.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/clock.h"
#include "core/checkpoint/folder.h"
#include "core/intercept/host_allocator.h"
#include "core/intercept/op_profile.h"
#include "core/train/checkpoint.h"
#include "core/train/checkpointer.h"
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
  Run(Trainer& trainer, Reporter& reporter, Checkpointer& checkpointer, int64_t first)
      : trainer_(trainer),
        settings_(trainer.assembly().recipe.settings),
        reporter_(reporter),
        checkpointer_(checkpointer),
        first_(first),
        records_(reporter, trainer.assembly(), first) {}

  void train() {
    reporter_.phase("step");
    records_.memory("init");
    for (int64_t step = first_; step < settings_.steps; ++step) {
      one_step(step);
      if (evaluates_after(step)) evaluate(step);
      if (checkpointer_.is_due(step + 1, settings_.steps)) save(step);
    }
    records_.memory("step");
    end_saving();
    require_engagement(trainer_.assembly());
    records_.finish(settings_.steps - first_);
    reporter_.phase("done");
  }

 private:
  // Hooks cost time: the ledger is open in the first step only, and operators are counted in the
  // second if both are warm-up steps.
  StepResult measured_step(int64_t step) {
    if (step != first_ + 1 || settings_.warmup_steps < 2)
      return trainer_.step(step, step == first_);
    const intercept::OpProfile profile;
    StepResult result = trainer_.step(step);
    records_.operators(profile.totals(), result.wall_s);
    return result;
  }

  void one_step(int64_t step) {
    const StepResult result = measured_step(step);
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
    const EvalResult result = trainer_.evaluate(settings_.eval_batches);
    if (result.tokens > 0) records_.evaluation(step, result);  // else there is no loss to record
    records_.memory("eval");
    reporter_.phase("step");
  }

  void save(int64_t step) {
    records_.memory("step");
    reporter_.phase("checkpoint");
    const double start = monotonic_s();
    const auto written = checkpointer_.save(step + 1);
    records_.checkpoint(step, monotonic_s() - start);
    if (written) records_.checkpoint_written(*written);
    records_.memory("checkpoint");
    reporter_.phase("step");
  }

  void end_saving() {
    if (!checkpointer_.is_due(settings_.steps, settings_.steps)) return;
    reporter_.phase("checkpoint");
    if (const auto written = checkpointer_.finish()) records_.checkpoint_written(*written);
  }

  Trainer& trainer_;
  const TrainSettings& settings_;
  Reporter& reporter_;
  Checkpointer& checkpointer_;
  const int64_t first_;
  Records records_;
};

/// The first step: 0, or where the checkpoint that the cell resumes from stands.
int64_t resume(const json& cell, Assembly& a) {
  const json from = cell.value("resume_from", json());
  if (!from.is_string()) return 0;
  const auto folder = checkpoint::find_checkpoint(from.get<std::string>());
  const int64_t step = load_checkpoint(a, folder);
  const int64_t steps = a.recipe.settings.steps;
  if (step < steps) return step;
  throw Error("[R-CKPT] " + folder.string() + " stands at step " + std::to_string(step) +
                  "; train.steps is " + std::to_string(steps) + ": nothing is left to train",
              "raise train.steps, or resume from an earlier checkpoint");
}

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
  recipe.settings.batch.perturbation = cell.value("perturbation", int64_t{0});
  reporter.phase("build");
  Trainer trainer(assemble(std::move(recipe), rank, group_defaults(cell), at::kCPU));
  reporter.phase("init");
  const json train = cell.at("config").value("train", json::object());
  const std::string init_from = train.value("init_from", "");
  if (!init_from.empty()) import_weights(trainer.assembly(), init_from);
  const int64_t first = resume(cell, trainer.assembly());
  const std::filesystem::path folder = cell.value("spool_dir", "");
  Checkpointer checkpointer(trainer.assembly(),
                            checkpoint_settings(train, folder / checkpoint::kFolderName),
                            cell.at("config"));
  Run(trainer, reporter, checkpointer, first).train();
  if (train.value("save_weights", false)) {
    export_weights(trainer.assembly(), folder / "model.safetensors");
  }
}

}  // namespace assay::train
