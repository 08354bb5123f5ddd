// Columns: the figures that reports know, with title, printed unit, CSV header and statistic.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace assay::report {

/// How the runs of a recipe become one figure.
enum class Statistic { median, maximum, mean };

struct Column {
  std::string name{};   ///< of the metric
  std::string title{};  ///< "tokens/s"
  std::string unit{};   ///< as printed: "GiB", "ms"; empty when the title says it
  std::string csv{};    ///< header name_unit; values there are in the stored unit
  double scale = 1;     ///< stored / scale is printed
  Statistic statistic = Statistic::median;
};

/// "step p50 (ms)"
std::string heading(const Column& column);

std::string_view statistic_name(Statistic statistic);

/// Every figure that every run is asked for, in the order of CSV columns.
std::span<const Column> known_columns();

/// A known column, or one made for a metric that only some runs have.
Column column_for(const std::string& metric, const std::string& unit);

}  // namespace assay::report
