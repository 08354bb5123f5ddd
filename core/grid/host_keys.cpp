// The table of host keys: type, default, range and meaning, once.
#include "core/grid/host_keys.h"

#include <algorithm>
#include <limits>

namespace assay::grid {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

OptionSpec whole(std::string name, int64_t standard, double low, std::string doc,
                 Affects affects = Affects::numerics) {
  return {.name = std::move(name),
          .type = OptionType::integer,
          .default_value = standard,
          .range = {low, kUnbounded},
          .doc = std::move(doc),
          .affects = affects};
}

OptionSpec real(std::string name, double standard, Range range, std::string doc) {
  return {.name = std::move(name),
          .type = OptionType::real,
          .default_value = standard,
          .range = range,
          .doc = std::move(doc)};
}

OptionSpec choice(std::string name, std::vector<std::string> choices, std::string doc) {
  OptionSpec spec{.name = std::move(name), .type = OptionType::choice, .doc = std::move(doc)};
  spec.default_value = choices.front();
  spec.choices = std::move(choices);
  return spec;
}

std::vector<OptionSpec> cell_keys() {
  std::vector<OptionSpec> keys;
  for (const std::string_view dim : kMeshDims) {
    keys.push_back(whole("mesh." + std::string(dim), 1, 1, "degree of the mesh dimension"));
  }
  keys.push_back(real("optim.lr", 0, {0, kUnbounded}, "peak learning rate (optimizer's default)"));
  keys.push_back(whole("seed", 1, 0, "of initial weights and data order"));
  keys.push_back(whole("train.steps", 60, 1, "optimizer updates"));
  keys.push_back(whole("train.global_batch", 8, 1, "sequences per step, over all ranks"));
  keys.push_back(
      whole("train.micro_batch", 1, 1, "sequences per rank and forward (the rank's share)"));
  keys.push_back(whole("train.grad_accum", 1, 1, "forwards per step (derived)"));
  keys.push_back(
      real("train.max_norm", 1.0, {0, kUnbounded}, "clipping of the gradient norm, 0: off"));
  keys.push_back(whole("train.eval_every", 0, 0, "steps between evaluations, 0: only at the end"));
  keys.push_back(whole("train.eval_batches", 4, 1, "batches of one evaluation"));
  keys.push_back(whole("train.warmup", 0, 0, "steps of rising learning rate (10 % of the steps)"));
  keys.push_back(choice("train.schedule", {"cosine", "linear", "wsd", "constant"},
                        "learning rate after the warm-up"));
  keys.push_back(real("train.decay_ratio", 0.2, {0, 1}, "share of the steps that decay (wsd)"));
  keys.push_back(choice("train.decay_shape", {"linear", "sqrt", "cosine"}, "of the decay (wsd)"));
  keys.push_back(real("train.min_factor", 0, {0, 1}, "learning rate at the end, of its peak"));
  keys.push_back(whole("train.threads_per_rank", 1, 1, "CPU threads of a rank (cores / world)"));
  keys.push_back(whole("train.warmup_steps", 5, 0, "first steps that enter no timing"));
  keys.push_back({.name = "train.init_from",
                  .type = OptionType::path,
                  .default_value = std::string(),
                  .doc = "safetensors file with the initial weights (drawn from the seed)"});
  keys.push_back({.name = "train.save_weights",
                  .type = OptionType::boolean,
                  .default_value = false,
                  .doc = "write the final weights to model.safetensors in the run's folder"});
  OptionSpec trace = choice("train.trace", {"off", "blocks", "ops"},
                            "record digests of every step, for assay diff (slow)");
  trace.affects = Affects::speed;
  keys.push_back(std::move(trace));
  keys.push_back(
      whole("train.checkpoint_every", 0, 0, "steps between checkpoints, 0: none", Affects::speed));
  keys.push_back(
      whole("train.keep", 10, 0, "newest checkpoints that stay, 0: all, never 1", Affects::speed));
  keys.push_back({.name = "train.checkpoint_async",
                  .type = OptionType::boolean,
                  .default_value = false,
                  .doc = "write checkpoints in the background, from a copy",
                  .affects = Affects::speed});
  std::sort(keys.begin(), keys.end(),
            [](const OptionSpec& a, const OptionSpec& b) { return a.name < b.name; });
  return keys;
}

std::vector<OptionSpec> execution_keys() {
  constexpr int64_t kSecond = 1'000'000'000;
  const auto duration = [](std::string name, int64_t standard, std::string doc) {
    return OptionSpec{.name = std::move(name),
                      .type = OptionType::duration,
                      .default_value = standard,
                      .range = {1, kUnbounded},
                      .doc = std::move(doc)};
  };
  return {duration("timeout", 1800 * kSecond, "longest time of a run"),
          duration("step_timeout", 600 * kSecond, "longest time without a step"),
          whole("retries", 2, 0, "of runs lost to the infrastructure"),
          whole("devices", 1, 1, "devices that cells may use (all cores)"),
          {.name = "memory_limit",
           .type = OptionType::bytes,
           .default_value = int64_t{0},
           .range = {1, kUnbounded},
           .doc = "of each rank"},
          {.name = "timed",
           .type = OptionType::boolean,
           .default_value = true,
           .doc = "run one cell at a time, so that timings count"}};
}

}  // namespace

const std::vector<OptionSpec>& host_keys() {
  static const std::vector<OptionSpec> keys = cell_keys();
  return keys;
}

const std::vector<OptionSpec>& run_keys() {
  static const std::vector<OptionSpec> keys = execution_keys();
  return keys;
}

const OptionSpec* find_key(const std::vector<OptionSpec>& specs, std::string_view name) {
  for (const OptionSpec& spec : specs) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

}  // namespace assay::grid
