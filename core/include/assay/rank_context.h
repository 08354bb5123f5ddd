// RankContext: what a component may know about the rank it serves.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "assay/mesh.h"
#include "assay/weight.h"

namespace assay {

class Model;
class Precision;

/// One parameter on this rank: its placement, and the sink that collects its gradient.
struct Parameter {
  ParameterSpec spec{};
  ParameterPlacement placement{};
  Tensor weight{};  ///< what primitives read: local box, compute dtype
  GradientSink sink{};
};

/// Proof of engagement: counters by "<component>.<what>"; zero where a recipe asked for the
/// technique makes the run invalid (R-ENGAGE).
using Counters = std::map<std::string, int64_t>;

struct RankContext {
  const Mesh& mesh;
  GroupMap& groups;
  const Model& model;
  const Precision& precision;
  std::vector<Parameter>& parameters;  ///< order of Model::parameters()
  StepState& step;
  Counters& counters;
  at::Device device;
  uint64_t seed;
};

}  // namespace assay
