// Chart: a picture with its title, legend and notes. Each function draws one question's answer, or
// nothing where the study has no data for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/report/model.h"

namespace assay::report {

struct LegendItem {
  std::string cls{};  ///< class of its swatch: "f3" a fill, "s3" a line
  std::string text{};
};

struct Chart {
  std::string title{};  ///< what is compared
  std::string subtitle{};
  std::string svg{};
  std::vector<LegendItem> legend{};
  std::vector<std::string> notes{};
  double width = 0;  ///< units of the picture, where it is wider than others
};

/// Bars from zero with the range over runs, fastest first, the baseline as a line.
std::optional<Chart> throughput_chart(const Model& model);
/// Final validation loss of each recipe with its range, lowest first.
std::optional<Chart> final_loss_chart(const Model& model);
/// Peak memory against throughput: recipes that no other beats in both form the front.
std::optional<Chart> pareto_chart(const Model& model);
/// Loss over tokens, loss over seconds, difference to the baseline over tokens.
std::vector<Chart> loss_charts(const Model& model);
/// Peak memory by category.
std::optional<Chart> memory_chart(const Model& model);
/// Bytes on the wire per step, by group of ranks.
std::optional<Chart> traffic_chart(const Model& model);
/// One heat map per figure over the swept axes, each missing cell with its reason.
std::vector<Chart> matrix_charts(const Model& model);
/// The pairs of every time verdict in run order.
std::vector<Chart> pair_charts(const Model& model);

}  // namespace assay::report
