// The table of figures. A new metric that should have a column of its own gets a line here.
#include "core/report/columns.h"

#include <vector>

namespace assay::report {
namespace {

constexpr double kMilli = 1e-3;
constexpr double kKiB = 1024;
constexpr double kMiB = kKiB * 1024;
constexpr double kGiB = kMiB * 1024;

std::vector<Column> make_columns() {
  using enum Statistic;
  return {
      {"tokens_per_s", "tokens/s", "", "tokens_per_s"},
      {"tokens_per_s_device", "tokens/s/device", "", "tokens_per_s_device"},
      {"tokens_per_s_e2e", "tokens/s end to end", "", "tokens_per_s_e2e"},
      {"step_p10_s", "step p10", "ms", "step_p10_s", kMilli},
      {"step_p50_s", "step p50", "ms", "step_p50_s", kMilli},
      {"step_p90_s", "step p90", "ms", "step_p90_s", kMilli},
      {"used_steps", "used steps", "", "used_steps"},
      {"startup_s", "start-up", "s", "startup_s"},
      {"startup_total_s", "start-up of the worker", "s", "startup_total_s"},
      {"first_step_s", "first step", "s", "first_step_s"},
      {"data_wait_s", "data wait", "ms/step", "data_wait_s_per_step", kMilli},
      {"comm_exposed_s", "exposed comm.", "ms/step", "comm_exposed_s_per_step", kMilli},
      {"forward_s", "forward", "ms/step", "forward_s_per_step", kMilli},
      {"backward_s", "backward", "ms/step", "backward_s_per_step", kMilli},
      {"optimizer_s", "optimizer", "ms/step", "optimizer_s_per_step", kMilli},
      {"virtual_step_s", "virtual step, emulated", "ms", "virtual_step_s", kMilli},
      {"peak_allocated_bytes", "peak alloc", "GiB", "peak_allocated_bytes", kGiB, maximum},
      {"peak_reserved_bytes", "peak reserved", "GiB", "peak_reserved_bytes", kGiB, maximum},
      {"peak_rss_bytes", "peak RSS", "GiB", "peak_rss_bytes", kGiB, maximum},
      {"saved_activation_bytes", "saved activations", "MiB", "saved_activation_bytes", kMiB,
       maximum},
      {"wire_bytes", "wire", "MiB/step", "wire_bytes_per_step", kMiB, maximum},
      {"payload_bytes", "payload", "MiB/step", "payload_bytes_per_step", kMiB, maximum},
      {"collectives", "collectives", "1/step", "collectives_per_step", 1, maximum},
      {"mfu", "MFU", "%", "mfu", 0.01},
      {"final_val_loss", "val loss", "nat", "final_val_loss_nat", 1, mean},
      {"bits_per_byte", "bits/byte", "", "bits_per_byte", 1, mean},
      {"prediction_error", "prediction error", "%", "prediction_error", 0.01, maximum},
  };
}

}  // namespace

std::string heading(const Column& column) {
  return column.unit.empty() ? column.title : column.title + " (" + column.unit + ")";
}

std::string_view statistic_name(Statistic statistic) {
  switch (statistic) {
    case Statistic::median:
      return "median";
    case Statistic::maximum:
      return "maximum";
    case Statistic::mean:
      return "mean";
  }
  return "";
}

std::span<const Column> known_columns() {
  static const std::vector<Column> columns = make_columns();
  return columns;
}

Column column_for(const std::string& metric, const std::string& unit) {
  for (const Column& column : known_columns()) {
    if (column.name == metric) return column;
  }
  const std::string shown = unit == "1" ? "" : unit;
  return {.name = metric, .title = metric, .unit = shown, .csv = metric};
}

}  // namespace assay::report
