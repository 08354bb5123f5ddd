// Ranks are threads of this process that meet in comm/thread.
#include "layouts.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <filesystem>
#include <set>
#include <sstream>
#include <thread>

#include "assay/error.h"
#include "core/sdk/loader.h"
#include "core/train/trainer.h"

namespace assay::parity {
namespace {

using nlohmann::json;

int64_t world_of(const json& mesh) {
  int64_t world = 1;
  for (const auto& [dim, degree] : mesh.items()) {
    if (dim != "ep") world *= degree.get<int64_t>();
  }
  return world;
}

RankOutcome run_rank(train::Trainer& trainer, int64_t steps) {
  RankOutcome out;
  for (int64_t i = 0; i < steps; ++i) {
    const train::StepResult step = trainer.step(i);
    out.losses.push_back(step.loss);
    out.norms.push_back(step.grad_norm);
  }
  train::Assembly& a = trainer.assembly();
  for (const Traffic& t : a.groups.traffic()) {
    if (t.phase != "control") out.traffic.push_back(t);
  }
  out.eval_loss = trainer.evaluate(1).loss;
  for (size_t i = 0; i < a.shards.size(); ++i) {
    const Parameter& p = a.parameters[a.parameter_of[i]];
    out.parts.push_back(
        {p.spec.name, p.stored.box(), p.master.detach().clone(), a.shards[i].state});
  }
  out.memory = train::memory_bytes(a);
  out.counters = a.counters;
  return out;
}

double relative(double a, double b) { return std::abs(a - b) / std::max(std::abs(b), 1e-300); }

Tensor part(Tensor whole, const Box& box) {
  for (size_t d = 0; d < box.size.size(); ++d) {
    whole = whole.narrow(static_cast<int64_t>(d), box.begin[d], box.size[d]);
  }
  return whole;
}

}  // namespace

// Files are called after a component or after its kind and it.
void load_plugins_of(const json& config) {
  static std::set<std::filesystem::path> loaded;
  std::vector<std::filesystem::path> files;
  const auto want = [&](const std::string& kind, const json& component) {
    const std::string name = component.at("name");
    for (const std::string& stem : {kind + "_" + name, name}) {
      const std::filesystem::path file =
          std::filesystem::path(ASSAY_PLUGIN_DIR) / (stem + ".assay.so");
      if (!std::filesystem::exists(file)) continue;
      if (loaded.insert(file).second) files.push_back(file);
      return;
    }
    throw Error("no plugin file for " + kind + "/" + name);
  };
  for (const char* kind : {"model", "data", "memory", "precision", "optim", "compile", "comm"}) {
    want(kind, config.at(kind));
  }
  for (const auto& [dim, component] : config.at("parallel").items()) want("parallel", component);
  for (const auto& file : files) load_plugin(file);
}

json base_config() {
  return {{"model",
           {{"name", "llama3"},
            {"flavour", "tiny"},
            {"layers", 4},
            {"hidden", 32},
            {"heads", 4},
            {"kv_heads", 2},
            {"ffn", 52},
            {"seq_len", 16}}},
          {"data", {{"name", "synthetic"}, {"vocab_size", 37}, {"branches", 2}}},
          {"mesh", json::object()},
          {"parallel", json::object()},
          {"memory", {{"name", "none"}}},
          {"precision", {{"name", "fp64"}}},
          {"optim", {{"name", "adamw"}, {"lr", 1e-2}}},
          {"compile", {{"name", "eager"}}},
          {"comm", {{"name", "thread"}}},
          {"train",
           {{"steps", 5},
            {"global_batch", 8},
            {"micro_batch", 1},
            {"max_norm", 1.0},
            {"warmup", 0},
            {"schedule", "constant"},
            {"eval_batches", 1}}},
          {"seed", 1}};
}

json layout(const std::string& mesh, json components, json config) {
  std::istringstream words(mesh);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    config["mesh"][word.substr(0, equals)] = std::stoi(word.substr(equals + 1));
  }
  for (const auto& [dim, component] : components.items()) config["parallel"][dim] = component;
  return config;
}

void on_ranks(const json& config, const std::function<void(train::Trainer&)>& body,
              const Plant& plant) {
  load_plugins_of(config);
  static std::atomic<int> runs{0};
  const GroupSpec groups{.rendezvous = "parity" + std::to_string(runs++),
                         .timeout_ns = 60'000'000'000};
  std::vector<std::exception_ptr> errors(static_cast<size_t>(world_of(config.at("mesh"))));
  std::vector<std::thread> ranks;
  for (size_t rank = 0; rank < errors.size(); ++rank) {
    ranks.emplace_back([&, rank] {
      at::set_num_threads(1);
      try {
        train::Recipe recipe = train::make_recipe(config);
        if (plant) plant(recipe);
        train::Trainer trainer(
            train::assemble(std::move(recipe), static_cast<int>(rank), groups, at::kCPU));
        body(trainer);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

std::vector<RankOutcome> run(const json& config, int64_t steps, const Tamper& tamper,
                             const Plant& plant) {
  std::vector<RankOutcome> outcomes(static_cast<size_t>(world_of(config.at("mesh"))));
  on_ranks(
      config,
      [&](train::Trainer& trainer) {
        if (tamper) tamper(trainer.assembly());
        outcomes[static_cast<size_t>(trainer.assembly().mesh.rank())] = run_rank(trainer, steps);
      },
      plant);
  return outcomes;
}

Distance distance(const std::vector<RankOutcome>& ranks, const RankOutcome& one) {
  Distance d;
  for (const RankOutcome& rank : ranks) {
    for (size_t i = 0; i < one.losses.size(); ++i) {
      d.loss = std::max(d.loss, relative(rank.losses.at(i), one.losses[i]));
      d.norm = std::max(d.norm, relative(rank.norms.at(i), one.norms[i]));
    }
    d.eval = std::max(d.eval, relative(rank.eval_loss, one.eval_loss));
    for (const StoredPart& p : rank.parts) {
      const auto whole = std::ranges::find(one.parts, p.name, &StoredPart::name);
      if (whole == one.parts.end()) throw Error("one rank has no parameter " + p.name);
      if (p.master.numel() == 0) continue;
      const double gap = (p.master - part(whole->master, p.box)).abs().max().item<double>();
      d.weights = std::max(d.weights, gap / whole->master.abs().max().item<double>());
    }
  }
  return d;
}

}  // namespace assay::parity
