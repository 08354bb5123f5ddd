// assay schedule: show, list and check pipeline schedules; no worker and no LibTorch.
#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>

#include "assay/error.h"
#include "assay/files.h"
#include "core/base/diagnostic.h"
#include "core/base/units.h"
#include "core/cli/commands.h"
#include "core/cli/schedule_view.h"
#include "core/cli/view.h"
#include "core/schedule/csv.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostRanks = 4096, kMostMicrobatches = 65536, kMostChunks = 64;
constexpr int64_t kMostActions = 1 << 22;  // a picture of more helps nobody

struct ShowArguments {
  std::string name{};
  int64_t ranks = 0, chunks = 0, microbatches = 0;
  std::string times = "1,1,1";
  double latency = 0, overlapped = 0;
  fs::path svg{}, csv{};
  bool lowered = false, merge = false, allow_short = false;
};

ChunkTimes parse_times(const ShowArguments& arguments) {
  std::vector<double> parts;
  std::string_view rest = arguments.times;
  for (size_t end = 0; end != std::string_view::npos && parts.size() < 4;) {
    end = rest.find(',');
    const auto value = parse_real(rest.substr(0, end));
    if (!value || !std::isfinite(*value) || *value <= 0) break;
    parts.push_back(*value);
    if (end != std::string_view::npos) rest.remove_prefix(end + 1);
    if (end == std::string_view::npos) rest = {};
  }
  if (parts.size() != 3 || !rest.empty()) {
    throw Error("--times must be F,I,W, three numbers above 0; got '" + arguments.times + "'",
                "forward, input gradient and weight gradient of one chunk: --times 2,3,1");
  }
  return {.forward = parts[0],
          .input = parts[1],
          .weight = parts[2],
          .overlapped = arguments.overlapped,
          .latency = arguments.latency};
}

[[noreturn]] void refuse(const PipelineRefusal& refusal) {
  throw DiagnosticError(Diagnostic{.severity = Severity::refused,
                                   .id = refusal.rule,
                                   .place = "command line",
                                   .text = refusal.text,
                                   .hints = {refusal.hint}});
}

/// A known schedule of the shape that the flags name.
ScheduleView known_view(const ShowArguments& arguments) {
  const PipelineSchedule& schedule = pipeline_schedule(arguments.name);
  if (arguments.ranks == 0 || arguments.microbatches == 0) {
    throw Error("a schedule needs a shape: --pp and --microbatches",
                "assay schedule show " + arguments.name + " --pp 4 --microbatches 8");
  }
  const PipelineShape shape{arguments.ranks,
                            arguments.chunks > 0 ? arguments.chunks : schedule.default_chunks,
                            arguments.microbatches};
  const PipelineOptions options{.allow_short = arguments.allow_short};
  if (const auto refused = refusal(schedule, shape, options)) refuse(*refused);
  if (shape.stages() * shape.microbatches > kMostActions) {
    throw Error("the schedule has " + std::to_string(shape.stages() * shape.microbatches) +
                " forwards; at most " + std::to_string(kMostActions) + " are shown");
  }
  ScheduleView view{.name = arguments.name, .shape = shape};
  view.lists = generate(schedule.name, shape, options);
  view.rank_of_stage = ranks_of_stages(schedule.placement, shape);
  return view;
}

ScheduleFile checked_file(const fs::path& file, int64_t ranks, int64_t microbatches) {
  ScheduleReading reading = parse_schedule_csv(read_file(file), file.string(), ranks, microbatches);
  if (!reading.problems.empty()) throw DiagnosticError(std::move(reading.problems));
  return std::move(reading.file);
}

int64_t most_stages_per_rank(const std::vector<int64_t>& rank_of_stage) {
  std::map<int64_t, int64_t> counts;
  int64_t most = 0;
  for (const int64_t rank : rank_of_stage) most = std::max(most, ++counts[rank]);
  return most;
}

ScheduleView file_view(const std::string& name, ScheduleFile file) {
  ScheduleView view{.name = name};
  view.shape = {std::ssize(file.lists), most_stages_per_rank(file.rank_of_stage),
                file.microbatches};
  view.lists = std::move(file.lists);
  for (ActionList& list : view.lists) {
    std::erase_if(list, [](const Action& action) { return !is_compute(action.kind); });
  }
  view.rank_of_stage = std::move(file.rank_of_stage);
  return view;
}

void simulate_view(ScheduleView& view, const ChunkTimes& times, const PipelineSchedule* known) {
  view.times = times;
  view.line = simulate(view.lists, view.rank_of_stage, view.shape.microbatches, times);
  if (known) view.form = closed_form(*known, view.shape, times);
}

void write_drawing(const fs::path& file, const std::string& content, const Context& context) {
  write_file_atomically(file, content);
  if (context.verbosity >= 0) *context.err << "wrote " << file.string() << "\n";
}

std::string legend(const ScheduleView& view) {
  return view.shape.chunks > 1
             ? "0F1: stage 0, forward, microbatch 1; B backward, I its input part, W its weight "
               "part\n"
             : "1: forward of microbatch 1; B1 backward, I1 its input part, W1 its weight part\n";
}

void print_view(const ScheduleView& view, const std::vector<ActionList>* lowered,
                const Context& context) {
  std::ostream& out = *context.out;
  if (context.json) {
    out << schedule_json(view, lowered).dump(2) << "\n";
    return;
  }
  out << head_line(view) << "\n\n";
  if (context.verbosity >= 0) {
    PictureStyle style{.color = context.colored(out)};
    if (&out == &std::cout) style.width = terminal_width();
    out << picture_text(view, style);
    out << legend(view) << "\n";
  }
  out << figures_text(view);
  if (lowered) out << "\nlowered, one row per rank:\n" << print_schedule_csv(*lowered);
}

void show(const ShowArguments& arguments, Context& context) {
  const ChunkTimes times = parse_times(arguments);
  const bool is_file = arguments.name.ends_with(".csv");
  ScheduleView view =
      is_file ? file_view(arguments.name,
                          checked_file(arguments.name, arguments.ranks, arguments.microbatches))
              : known_view(arguments);
  if (arguments.merge) {
    for (ActionList& list : view.lists) list = merge_backward(list);
  }
  const bool as_known = !is_file && !arguments.merge;
  simulate_view(view, times, as_known ? &pipeline_schedule(arguments.name) : nullptr);
  std::vector<ActionList> lowered;
  if (arguments.lowered) lowered = lower(view.lists, view.rank_of_stage);
  const std::vector<ActionList>& written = arguments.lowered ? lowered : view.lists;
  if (!arguments.csv.empty()) {
    write_drawing(arguments.csv, print_schedule_csv(written), context);
  }
  if (!arguments.svg.empty()) write_drawing(arguments.svg, picture_svg(view), context);
  print_view(view, arguments.lowered ? &lowered : nullptr, context);
}

void add_shape_options(CLI::App& command, int64_t& ranks, int64_t& microbatches) {
  command.add_option("--pp", ranks, "Pipeline ranks p")
      ->check(CLI::Range(int64_t{1}, kMostRanks).description(""))
      ->type_name("N");
  command.add_option("--microbatches", microbatches, "Microbatches per step m")
      ->check(CLI::Range(int64_t{1}, kMostMicrobatches).description(""))
      ->type_name("N");
}

void add_show(CLI::App& schedule, Context& context) {
  auto arguments = std::make_shared<ShowArguments>();
  CLI::App* command = schedule.add_subcommand("show", "The grid picture and the figures of one");
  command->add_option("name", arguments->name, "Name of a schedule, or FILE.csv")->required();
  add_shape_options(*command, arguments->ranks, arguments->microbatches);
  command->add_option("--chunks", arguments->chunks, "Stages per rank v (default: the schedule's)")
      ->check(CLI::Range(int64_t{1}, kMostChunks).description(""))
      ->type_name("N");
  command->add_option("--times", arguments->times, "Times of one chunk (default: 1,1,1)")
      ->type_name("F,I,W");
  command->add_option("--overlap", arguments->overlapped, "Time of an overlapped pair (F+I+W)")
      ->check(CLI::PositiveNumber.description(""))
      ->type_name("O");
  command->add_option("--latency", arguments->latency, "Time of a transfer between ranks (0)")
      ->check(CLI::NonNegativeNumber.description(""))
      ->type_name("C");
  command->add_flag("--merge-bw", arguments->merge, "Make adjacent I and W one B");
  command->add_flag("--allow-short", arguments->allow_short, "Let zbv have m < 2p");
  command->add_flag("--lowered", arguments->lowered, "With sends, receives, unshards, reductions");
  command->add_option("--svg", arguments->svg, "Draw the picture to a file")->type_name("FILE");
  command->add_option("--csv", arguments->csv, "Write the actions, one row per rank")
      ->type_name("FILE");
  command->footer(R"(
Examples:
  assay schedule show 1f1b --pp 4 --microbatches 8
  assay schedule show interleaved_zb --pp 4 --chunks 1 --microbatches 8 --times 2,3,1
  assay schedule show dualpipev --pp 4 --microbatches 10 --svg dualpipev.svg --csv dualpipev.csv
  assay schedule show mine.csv --lowered)");
  command->callback([arguments, &context] { show(*arguments, context); });
}

void add_list(CLI::App& schedule, Context& context) {
  CLI::App* command = schedule.add_subcommand("list", "The known schedules and their shapes");
  command->callback([&context] {
    *context.out << (context.json ? schedules_json().dump(2) + "\n" : schedules_text());
  });
}

void add_check(CLI::App& schedule, Context& context) {
  struct Arguments {
    fs::path file{};
    int64_t ranks = 0, microbatches = 0;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      schedule.add_subcommand("check", "Whether a schedule file is complete and runs to its end");
  command->add_option("file", arguments->file, "Schedule (CSV)")->required();
  add_shape_options(*command, arguments->ranks, arguments->microbatches);
  command->footer(R"(
Example:
  assay schedule check mine.csv --pp 4 --microbatches 8)");
  command->callback([arguments, &context] {
    ScheduleFile file = checked_file(arguments->file, arguments->ranks, arguments->microbatches);
    const bool lowered = file.lowered;
    ScheduleView view = file_view(arguments->file.string(), std::move(file));
    simulate_view(view, {}, nullptr);
    if (context.json) {
      *context.out << schedule_json(view, nullptr).dump(2) << "\n";
      return;
    }
    *context.out << head_line(view) << "\n"
                 << (lowered ? "lowered" : "compute-only") << ", complete, runs to its end\n\n"
                 << figures_text(view);
  });
}

}  // namespace

void add_schedule(CLI::App& app, Context& context) {
  CLI::App* schedule = app.add_subcommand("schedule", "Pipeline schedules: show, list, check");
  schedule->require_subcommand(1);
  schedule->fallthrough();
  add_show(*schedule, context);
  add_list(*schedule, context);
  add_check(*schedule, context);
}

}  // namespace assay::cli
