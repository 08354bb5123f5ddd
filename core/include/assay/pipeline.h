// Pipeline: which ranks hold which stages, the known schedules, CSV files, and the lowering of a
// compute-only schedule to what a rank runs (recipes 2.9).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/api.h"
#include "assay/schedule.h"

namespace assay {

struct PipelineShape {
  int64_t ranks = 1;         ///< p
  int64_t chunks = 1;        ///< v, stages per rank
  int64_t microbatches = 1;  ///< m
  int64_t stages() const { return ranks * chunks; }
};

enum class StagePlacement {
  loop,  ///< stage s on rank s mod p
  v,     ///< two stages per rank: s on rank s if s < p, else 2p-1-s
};

/// One of the known schedules.
struct PipelineSchedule {
  std::string_view name;
  StagePlacement placement;
  int64_t least_chunks, most_chunks;  ///< most 0: no bound
  int64_t default_chunks;
  bool splits_backward;  ///< has I and W
  std::string_view summary;
  std::string_view reference;
};

ASSAY_API const std::vector<PipelineSchedule>& pipeline_schedules();
/// Throws Error with the nearest names.
ASSAY_API const PipelineSchedule& pipeline_schedule(std::string_view name);

struct PipelineOptions {
  bool allow_short = false;  ///< zbv with m < 2p: valid, but not without bubbles
};

/// Why a schedule cannot have a shape: the rule's id (R-PPM, R-PPV), the reason, what to do.
struct PipelineRefusal {
  std::string rule, text, hint;
};
ASSAY_API std::optional<PipelineRefusal> refusal(const PipelineSchedule& schedule,
                                                 const PipelineShape& shape,
                                                 const PipelineOptions& options = {});

/// Compute-only list of each rank. Throws Error "R-PPM: ..." for a shape that is refused.
ASSAY_API std::vector<ActionList> generate(std::string_view name, const PipelineShape& shape,
                                           const PipelineOptions& options = {});

/// Rank of each stage 0 .. p*v-1.
ASSAY_API std::vector<int64_t> ranks_of_stages(StagePlacement placement,
                                               const PipelineShape& shape);

/// Number of layers of each stage. With q, rem = divmod(layers + first + last, stages), stage i has
/// q + (i < rem), stage 0 minus `first` (it holds the embedding too), the last minus `last` (norm
/// and head): with few layers they may hold nothing else. Throws Error "R-PPL: ..." where a stage
/// would be empty (q = 0) or `first` or `last` exceeds q.
ASSAY_API std::vector<int64_t> split_layers(int64_t layers, int64_t stages,
                                            int64_t first_less_layers = 1,
                                            int64_t last_less_layers = 1);

struct LowerOptions {
  bool merge_backward = false;  ///< adjacent I and W of one microbatch become B
  bool shard = true;            ///< UNSHARD and RESHARD
  int64_t prefetch = 3;         ///< so many distinct stages are unsharded ahead
};

/// Adds what a rank does besides computing, in the order that PyTorch's lowering gives:
/// UNSHARD before an action for the next `prefetch` distinct stages of the row, RESHARD of stages
/// not among them; REDUCE_GRAD after the last W or B of a stage; and, ranks taken in turns, SEND
/// after an F, B or I whose neighbour is on another rank, with its RECV at the peer. So sends and
/// receives stand in one order per pair of ranks, and running them in that order cannot dead-lock.
/// Throws Error naming every rank's next action when the lists themselves dead-lock.
ASSAY_API std::vector<ActionList> lower(const std::vector<ActionList>& compute_only,
                                        const std::vector<int64_t>& rank_of_stage,
                                        const LowerOptions& options = {});
/// Adjacent I and W of one stage and microbatch become B.
ASSAY_API ActionList merge_backward(const ActionList& list);

/// One row per rank, cells separated by commas.
ASSAY_API std::string print_schedule_csv(const std::vector<ActionList>& lists);

/// A schedule of a file: complete, without dead-lock.
struct ScheduleFile {
  std::vector<ActionList> lists;
  std::vector<int64_t> rank_of_stage;
  int64_t microbatches = 0;
  bool lowered = false;  ///< holds SEND, RECV, UNSHARD, RESHARD or REDUCE_GRAD
};
/// Throws Error "R-CSV: FILE:LINE:COLUMN: ..." for the first thing that is wrong.
ASSAY_API ScheduleFile read_schedule_csv(const std::filesystem::path& file);

}  // namespace assay
