// How a plan is printed: text, Markdown, JSON, and one cell with the origin of each value.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/grid/plan.h"

namespace assay::cli {

/// "12 expanded + 0 included - 1 excluded ... = 11 cells, 33 runs"
std::string counts_line(const grid::Plan& plan);

/// "tune: 10 trials of 200 steps come first: optim.lr times 0.5, 1 on seed 101"; of a tuned study.
std::string tune_line(const grid::Plan& plan);

/// Counts, trials, swept axes, then a line for each cell and each skip.
std::string plan_text(const grid::Plan& plan);
std::string plan_markdown(const grid::Plan& plan);
nlohmann::json plan_json(const grid::Plan& plan);

/// The cell whose slug is `which` or whose id begins with it; throws Error when it is none (with
/// the nearest slug) or several.
const grid::Cell& find_cell(const grid::Plan& plan, const std::string& which);

/// That cell with the origin of each value; the plan has to carry origins.
std::string cell_text(const grid::Plan& plan, const std::string& which);

}  // namespace assay::cli
