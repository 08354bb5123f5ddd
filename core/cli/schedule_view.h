// ScheduleView: a schedule with its simulation, as `assay schedule` shows it; and its texts.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/schedule/closed_form.h"

namespace assay::cli {

struct ScheduleView {
  std::string name{};  ///< of the schedule, or of the file it comes from
  PipelineShape shape{};
  ChunkTimes times{};
  std::vector<ActionList> lists{};  ///< compute-only
  std::vector<int64_t> rank_of_stage{};
  Timeline line{};
  std::optional<ClosedForm> form{};  ///< nothing for a file
};

/// "0F1" of a rank with several stages; with one stage the forward of microbatch 1 is "1", its
/// backward "B1". A pair is "4F4+3B1".
std::string unit_label(const ScheduleView& view, std::span<const Action> unit);
/// 0, 1, ...: which of its rank's stages this is.
int64_t chunk_of(const ScheduleView& view, int64_t stage);
/// "1f1b: p = 4 ranks, v = 1 stage per rank, m = 8 microbatches; F = 1, I = 1, W = 1"
std::string head_line(const ScheduleView& view);
/// Up to four decimals, no trailing zeros: 33, 0.2727.
std::string print_time(double value);

struct PictureStyle {
  int width = 100;  ///< of the terminal; longer pictures go on below
  bool color = false;
};
/// One row per rank, time to the right; '.' is idle.
std::string picture_text(const ScheduleView& view, const PictureStyle& style);
/// Makespan, bubble, peak and messages, beside their closed forms.
std::string figures_text(const ScheduleView& view);
/// A drawing with a legend, for light and dark pages and for print.
std::string picture_svg(const ScheduleView& view);
nlohmann::json schedule_json(const ScheduleView& view, const std::vector<ActionList>* lowered);
/// The known schedules and what shapes they take.
std::string schedules_text();
nlohmann::json schedules_json();

}  // namespace assay::cli
