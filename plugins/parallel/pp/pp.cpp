// Splits the blocks and asks for the schedule's actions.
#include "pp.h"

#include <algorithm>

#include "assay/error.h"
#include "assay/plugin.h"

namespace assay::parallel {
namespace {

bool is_layer(const BlockSpec& block) { return block.kind == BlockSpec::Kind::layer; }

// What comes before the first layer belongs to the first stage, what comes after the last layer to
// the last.
std::vector<std::vector<size_t>> split(const std::vector<BlockSpec>& blocks, int64_t stages,
                                       const PpOptions& options) {
  const auto layers = std::ranges::count_if(blocks, is_layer);
  const std::vector<int64_t> sizes =
      split_layers(layers, stages, options.first_less_layers, options.last_less_layers);
  std::vector<std::vector<size_t>> result(static_cast<size_t>(stages));
  size_t stage = 0;
  int64_t left = sizes[0];
  for (size_t b = 0; b < blocks.size(); ++b) {
    if (is_layer(blocks[b])) {
      while (left == 0) left = sizes.at(++stage);
      --left;
    } else if (b > 0) {
      stage = result.size() - 1;
    }
    result[stage].push_back(b);
  }
  return result;
}

std::vector<int64_t> rows_of(int64_t ranks, const ScheduleFile& file) {
  if (static_cast<int64_t>(file.lists.size()) == ranks) return file.rank_of_stage;
  throw Error("R-CSV: the schedule has " + std::to_string(file.lists.size()) +
                  " rows, mesh.pp is " + std::to_string(ranks),
              "a schedule has one row per pipeline rank");
}

}  // namespace

Pipeline Pp::pipeline(const std::vector<BlockSpec>& blocks, int64_t ranks,
                      int64_t microbatches) const {
  Pipeline p;
  std::vector<ActionList> lists;
  bool lowered = false;
  if (options_.schedule == "csv") {
    ScheduleFile file = read_schedule_csv(options_.csv);
    p.rank_of_stage = rows_of(ranks, file);
    if (file.microbatches != microbatches) {
      throw Error("R-CSV: " + options_.csv.string() + " has " + std::to_string(file.microbatches) +
                      " microbatches, the recipe " + std::to_string(microbatches),
                  "set train.global_batch and train.micro_batch accordingly");
    }
    lists = std::move(file.lists);
    lowered = file.lowered;
  } else {
    const PipelineSchedule& schedule = pipeline_schedule(options_.schedule);
    const PipelineShape shape{.ranks = ranks,
                              .chunks = options_.v > 0 ? options_.v : schedule.default_chunks,
                              .microbatches = microbatches};
    p.rank_of_stage = ranks_of_stages(schedule.placement, shape);
    lists = generate(schedule.name, shape, {.allow_short = options_.allow_short});
  }
  p.actions = lowered ? std::move(lists)
                      : lower(lists, p.rank_of_stage, {.merge_backward = options_.merge_bw});
  p.blocks = split(blocks, static_cast<int64_t>(p.rank_of_stage.size()), options_);
  return p;
}

}  // namespace assay::parallel

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::parallel::Pp>(
      {.name = "pp",
       .summary = "pipeline stages under a schedule of actions",
       .reference = "arXiv:2104.04473",
       .provides = {"meta.safe"},
       .rules =
           {{"R-PPM", "schedule != \"1f1b\" or train.grad_accum >= mesh.pp",
             "1f1b needs at least as many microbatches as pipeline ranks"},
            {"R-PPV", "v <= 1 or not (schedule == \"gpipe\" or schedule == \"1f1b\")",
             "gpipe and 1f1b have one stage per rank"},
            {"R-PPIW",
             "compile.name != \"capture\" or not (schedule in [\"interleaved_zb\", \"zbv\", "
             "\"dualpipev\"])",
             "one captured graph per backward cannot run input and weight gradients apart"},
            {"R-PPTIE",
             "not facts.tied or mesh.pp == 1 or schedule == \"zbv\" or schedule == \"dualpipev\"",
             "a tied embedding and head need both ends of the pipeline on one rank, as zbv and "
             "dualpipev have them"}},
       .dims = {"pp"}});
}
