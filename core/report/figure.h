// Figure: one number of a report: raw, as printed, and why it is missing when it is. Rounding
// happens here and nowhere else, so the same figure prints the same in every format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::report {

enum class FigureState {
  measured,
  not_measured,  ///< no run recorded it: empty in CSV, "-" in tables, never 0
  failed,        ///< no run ended well
};

struct Figure {
  std::optional<double> value{};        ///< in the stored unit; nothing unless measured
  std::string nonfinite{};              ///< "nan", "inf", "-inf": measured, and no number
  std::optional<double> low{}, high{};  ///< over the runs behind it, when there are two or more
  FigureState state = FigureState::not_measured;
  std::vector<int64_t> runs{};  ///< ids of the runs behind it
  std::string display{};        ///< in the column's printed unit
  std::string display_low{}, display_high{};
};

/// Decimal places for a value: 2 significant digits of the half-width of its uncertainty (or of its
/// range over runs), never fewer than 3 significant digits of the value, never more than 6; without
/// a half-width 4 digits of the value. Negative: whole tens, hundreds, ...
int decimals(double value, std::optional<double> half_width);

/// Fixed notation, a space between groups of three digits: 12396.4 -> "12 396".
std::string print(double value, int decimals);

/// Measured, with display texts: value / scale, rounded by `decimals` of the range.
Figure measured(double value, std::optional<double> low, std::optional<double> high, double scale);
Figure measured(std::string nonfinite);
Figure missing(FigureState state);

/// "12 396 [12 338, 12 454]"; without a range the display text alone.
std::string with_range(const Figure& figure);

/// The number that a display text stands for, for tests that read reports back.
std::optional<double> parse_display(std::string_view text);

}  // namespace assay::report
