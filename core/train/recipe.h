// Recipe: the components of one cell, created from its resolved configuration.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "assay/api.h"
#include "assay/compile.h"
#include "assay/data.h"
#include "assay/memory.h"
#include "assay/model.h"
#include "assay/optimizer.h"
#include "assay/parallel.h"
#include "assay/precision.h"
#include "core/train/batches.h"
#include "core/train/lr_schedule.h"
#include "core/train/trace.h"

namespace assay::train {

/// `train.*`, `optim.lr` and `seed` of the resolved configuration.
struct TrainSettings {
  int64_t steps = 1;
  BatchShape batch{};
  double max_norm = 0.0;  ///< 0: no clipping
  int64_t eval_every = 0;
  int64_t eval_batches = 0;
  int64_t warmup_steps = 0;  ///< of timing, not of the learning rate
  double lr = 0.0;
  LrSchedule schedule{};
  uint64_t seed = 1;
  TraceLevel trace = TraceLevel::off;
};

struct Recipe {
  std::shared_ptr<DataSource> data;
  std::unique_ptr<Model> model;
  std::unique_ptr<Precision> precision;
  std::shared_ptr<MemoryPolicy> memory;
  std::unique_ptr<CompileBackend> compile;
  std::unique_ptr<Optimizer> optimizer;
  std::map<MeshDim, std::unique_ptr<ParallelStrategy>> parallel;  ///< dimensions in use
  std::shared_ptr<CommBackend> comm;                              ///< null in a world of one
  MeshDegrees degrees{};
  TrainSettings settings{};
};

/// Throws Error naming the component for an unknown name or option.
ASSAY_API Recipe make_recipe(const nlohmann::json& config);

}  // namespace assay::train
