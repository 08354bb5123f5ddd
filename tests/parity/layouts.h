// Layouts of a small model over ranks that are threads, and what a run on one of them gives.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "assay/communicator.h"
#include "assay/rank_context.h"
#include "core/train/assemble.h"
#include "core/train/memory_bytes.h"

namespace assay::train {
class Trainer;
}

namespace assay::parity {

/// The stored part of one parameter on one rank.
struct StoredPart {
  std::string name{};
  Box box{};
  Tensor master{};
  std::vector<Tensor> state{};
};

struct RankOutcome {
  std::vector<double> losses{}, norms{};  ///< by step; equal on every rank
  double eval_loss = 0;
  std::vector<StoredPart> parts{};
  std::vector<Traffic> traffic{};  ///< without phase control
  train::MemoryBytes memory{};     ///< after the last step
  Counters counters{};
};

/// One resolved configuration: a 4-layer model in fp64 with sizes that do not divide evenly (37
/// ids), 4 sequences of 16 tokens per step in 2 microbatches at most.
nlohmann::json base_config();

/// `mesh` as "dp_shard=2 tp=2", `components` as {"dp_shard": {"name": "fsdp"}, ...}.
nlohmann::json layout(const std::string& mesh, nlohmann::json components,
                      nlohmann::json config = base_config());

/// Loads the plugins that a configuration names, each once per process.
void load_plugins_of(const nlohmann::json& config);

/// Changes a recipe before it is assembled, or an assembled one before its first step: how faults
/// are planted.
using Plant = std::function<void(train::Recipe&)>;
using Tamper = std::function<void(train::Assembly&)>;

/// Assembles every rank of a layout and calls `body` in its thread; what a rank throws is thrown.
void on_ranks(const nlohmann::json& config,
              const std::function<void(train::Trainer& trainer)>& body, const Plant& plant = {});

/// Trains `steps` steps and evaluates once; what a rank throws is thrown.
std::vector<RankOutcome> run(const nlohmann::json& config, int64_t steps = 5,
                             const Tamper& tamper = {}, const Plant& plant = {});

/// The largest relative difference of losses and norms to those of one rank, and of the weights to
/// the same boxes of its weights (relative to the largest weight of the parameter).
struct Distance {
  double loss = 0, norm = 0, eval = 0, weights = 0;
};
Distance distance(const std::vector<RankOutcome>& ranks, const RankOutcome& one);

}  // namespace assay::parity
