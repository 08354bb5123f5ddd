// RankContext: what a component may know about the rank it serves.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "assay/mesh.h"
#include "assay/weight.h"

namespace assay {

class Model;
class Precision;
struct BlockSpec;

/// One parameter on this rank. Two boxes: the local one, which primitives read and sinks collect
/// (cut by tp and ep), and within it the stored one, which the optimizer updates and checkpoints
/// hold (cut by dp_shard as well; the same box otherwise).
struct Parameter {
  ParameterSpec spec{};
  ParameterPlacement placement{};  ///< the local box
  ParameterPlacement stored{};     ///< the stored box
  bool present = true;             ///< false: its blocks run on other pipeline ranks; no tensors
  Tensor weight{};                 ///< local box, compute dtype
  Tensor master{};                 ///< stored box, master dtype; `weight` itself where equal
  Tensor gradient{};  ///< stored box, main-gradient dtype, reduced; the sink's total where equal
  GradientSink sink{};
};

/// Proof of engagement: counters by "<component>.<what>"; zero where a recipe asked for the
/// technique makes the run invalid (R-ENGAGE).
using Counters = std::map<std::string, int64_t>;

/// A tensor beside weights and optimizer state that later steps depend on (an expert bias, an outer
/// momentum): checkpoints hold it under its name.
struct KeptTensor {
  std::string name{};      ///< "<component>/<what>/<parameter>": unique, equal in every layout
  Shape shape{};           ///< global
  Box box{};               ///< of this rank's part
  Tensor tensor{};         ///< box.size; written in place when a checkpoint is loaded
  bool first_copy = true;  ///< false: another rank saves the same box
};

struct RankContext {
  const Mesh& mesh;
  GroupMap& groups;
  const Model& model;
  const Precision& precision;
  std::vector<Parameter>& parameters;    ///< order of Model::parameters()
  const std::vector<BlockSpec>& blocks;  ///< that run on this rank, in order
  bool pipelined;  ///< parameters are made whole, and gradients reduced, by actions only
  StepState& step;
  Counters& counters;
  at::Device device;
  uint64_t seed;
  /// Components add theirs in prepare() and in the wraps; null where nothing is saved.
  std::vector<KeptTensor>* kept = nullptr;
};

}  // namespace assay
