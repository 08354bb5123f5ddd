// The known schedules, what shapes they take, and where stages and layers go.
#include "assay/pipeline.h"

#include <algorithm>
#include <array>
#include <utility>

#include "assay/error.h"
#include "core/base/nearest.h"
#include "core/schedule/generators.h"

namespace assay {
namespace {

using Generator = ActionList (*)(const PipelineShape&, int64_t rank);

struct Known {
  PipelineSchedule schedule;
  Generator generator;
};

const std::vector<Known>& known() {
  using enum StagePlacement;
  static const std::vector<Known> table = {
      {{"gpipe", loop, 1, 1, 1, false, "all forwards, then all backwards", "arXiv:1811.06965"},
       generators::gpipe},
      {{"1f1b", loop, 1, 1, 1, false, "GPipe's bubble, at most p microbatches alive",
        "arXiv:2104.04473"},
       generators::one_f_one_b},
      {{"interleaved_1f1b", loop, 2, 0, 2, false,
        "1F1B over v chunks per rank: a bubble 1/v as long", "arXiv:2104.04473"},
       generators::interleaved_1f1b},
      {{"looped_bfs", loop, 2, 0, 2, false, "chunk by chunk over all microbatches: fewest unshards",
        "arXiv:2211.05953"},
       generators::looped_bfs},
      {{"interleaved_zb", loop, 1, 0, 2, true,
        "weight gradients fill the bubble; ZB-1P with one chunk", "arXiv:2401.10241"},
       generators::interleaved_zb},
      {{"zbv", v, 2, 2, 2, true, "V placement: idle only while the pipeline fills",
        "arXiv:2401.10241"},
       generators::zbv},
      {{"dualpipev", v, 2, 2, 2, true, "V placement, forward and backward overlapped",
        "arXiv:2412.19437"},
       generators::dualpipev},
  };
  return table;
}

const Known& find(std::string_view name) {
  std::vector<std::string> names;
  std::string all;
  for (const Known& entry : known()) {
    if (entry.schedule.name == name) return entry;
    names.emplace_back(entry.schedule.name);
    all += (all.empty() ? "" : ", ") + names.back();
  }
  const std::string near = did_you_mean(nearest(name, names));
  throw Error("no pipeline schedule '" + std::string(name) + "'",
              near.empty() ? "there are " + all : near);
}

std::string number(int64_t value) { return std::to_string(value); }

std::optional<PipelineRefusal> refuse_chunks(const PipelineSchedule& schedule, int64_t v) {
  if (v >= schedule.least_chunks && (schedule.most_chunks == 0 || v <= schedule.most_chunks)) {
    return std::nullopt;
  }
  const bool exactly = schedule.least_chunks == schedule.most_chunks;
  const std::string allowed = (exactly ? "exactly " : "at least ") + number(schedule.least_chunks) +
                              " chunk" + (schedule.least_chunks == 1 ? "" : "s") + " per rank";
  return PipelineRefusal{"R-PPV",
                         std::string(schedule.name) + " has " + allowed + "; v is " + number(v),
                         "nearest: v = " + number(schedule.least_chunks)};
}

/// Full rounds of p or more microbatches each, so that every chunk's turn is equally long.
bool whole_rounds(int64_t m, int64_t p) { return m % std::max<int64_t>(1, m / p) == 0; }

std::string nearest_whole_rounds(int64_t m, int64_t p) {
  int64_t below = m, above = m;
  while (!whole_rounds(below, p)) --below;  // m < p is one round
  while (!whole_rounds(above, p)) ++above;
  return number(below) + " or " + number(above);
}

std::optional<PipelineRefusal> refuse_microbatches(const PipelineSchedule& schedule,
                                                   const PipelineShape& shape,
                                                   const PipelineOptions& options) {
  const int64_t m = shape.microbatches, p = shape.ranks;
  const auto too_few = [&](int64_t least, const char* formula, const std::string& more) {
    return PipelineRefusal{"R-PPM",
                           std::string(schedule.name) + " needs at least " + formula + " = " +
                               number(least) + " microbatches; m is " + number(m) + " (p is " +
                               number(p) + ")",
                           "nearest: m = " + number(least) + more};
  };
  if (schedule.name == "1f1b" && m < p) return too_few(p, "p", "; gpipe takes any m");
  if (schedule.name == "dualpipev" && m < 2 * p) return too_few(2 * p, "2p", "");
  if (schedule.name == "zbv" && m < 2 * p && !options.allow_short) {
    return too_few(2 * p, "2p", ", or allow_short: the bubble is then larger than p-1");
  }
  const bool turns = schedule.name == "interleaved_1f1b" || schedule.name == "interleaved_zb";
  if (turns && !whole_rounds(m, p)) {
    return PipelineRefusal{"R-PPM",
                           std::string(schedule.name) +
                               " cuts the microbatches in m div p = " + number(m / p) +
                               " equal rounds; m is " + number(m) + " (p is " + number(p) + ")",
                           "nearest: m = " + nearest_whole_rounds(m, p)};
  }
  return std::nullopt;
}

}  // namespace

const std::vector<PipelineSchedule>& pipeline_schedules() {
  static const std::vector<PipelineSchedule> schedules = [] {
    std::vector<PipelineSchedule> list;
    for (const Known& entry : known()) list.push_back(entry.schedule);
    return list;
  }();
  return schedules;
}

const PipelineSchedule& pipeline_schedule(std::string_view name) { return find(name).schedule; }

std::optional<PipelineRefusal> refusal(const PipelineSchedule& schedule, const PipelineShape& shape,
                                       const PipelineOptions& options) {
  if (shape.ranks < 1 || shape.microbatches < 1) {
    return PipelineRefusal{"R-PPM",
                           "a pipeline has at least one rank and one microbatch; p is " +
                               number(shape.ranks) + ", m is " + number(shape.microbatches),
                           "nearest: 1"};
  }
  if (auto refused = refuse_chunks(schedule, shape.chunks)) return refused;
  return refuse_microbatches(schedule, shape, options);
}

std::vector<ActionList> generate(std::string_view name, const PipelineShape& shape,
                                 const PipelineOptions& options) {
  const Known& entry = find(name);
  if (const auto refused = refusal(entry.schedule, shape, options)) {
    throw Error(refused->rule + ": " + refused->text, refused->hint);
  }
  std::vector<ActionList> lists;
  for (int64_t rank = 0; rank < shape.ranks; ++rank) {
    lists.push_back(entry.generator(shape, rank));
  }
  return lists;
}

std::vector<int64_t> ranks_of_stages(StagePlacement placement, const PipelineShape& shape) {
  std::vector<int64_t> ranks;
  for (int64_t stage = 0; stage < shape.stages(); ++stage) {
    const bool back = placement == StagePlacement::v && stage >= shape.ranks;
    ranks.push_back(back ? 2 * shape.ranks - 1 - stage : stage % shape.ranks);
  }
  return ranks;
}

std::vector<int64_t> split_layers(int64_t layers, int64_t stages, int64_t first_less_layers,
                                  int64_t last_less_layers) {
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    throw Error("R-PPL: " + number(layers) + " layers on " + number(stages) + " stages: " + why,
                "nearest: " + hint);
  };
  const std::array weights = {std::pair{"first_less_layers", first_less_layers},
                              std::pair{"last_less_layers", last_less_layers}};
  for (const auto& [name, less] : weights) {
    if (less < 0) refuse(name + (" is " + number(less)), name + std::string(" = 0"));
  }
  const int64_t slots = layers + first_less_layers + last_less_layers;
  if (stages < 1) refuse("a pipeline has at least one", "1 stage");
  if (stages > slots) {
    refuse("a stage would be empty", number(std::max<int64_t>(1, slots)) + " stages");
  }
  const int64_t each = slots / stages, more = slots % stages;
  for (const auto& [name, less] : weights) {
    if (less <= each) continue;
    refuse(name + (" is " + number(less)) + ", but a stage has room for " + number(each),
           name + (" = " + number(each)));
  }
  std::vector<int64_t> split;
  for (int64_t i = 0; i < stages; ++i) split.push_back(each + (i < more ? 1 : 0));
  split.front() -= first_less_layers;
  split.back() -= last_less_layers;
  return split;
}

}  // namespace assay
