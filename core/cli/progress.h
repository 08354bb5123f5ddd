// Progress: what a supervisor tells, as lines, as a block that redraws itself, or as JSON Lines.
#pragma once

#include <chrono>
#include <iosfwd>
#include <map>
#include <string>

#include "core/host/observer.h"

namespace assay::cli {

struct ProgressStyle {
  bool redraw = false;  ///< stderr is a terminal: one line per running cell and a total
  bool json = false;    ///< JSON Lines on `out`
  bool quiet = false;   ///< failures and notes only
  int width = 100;      ///< of the terminal
};

/// "[12/33] moe_full r2  step 31/60  11.9k tok/s  4.1 GiB  00:42"
std::string running_line(const host::RunView& run, int64_t index, int64_t runs);
/// "12 of 33 done: 10 ok, 1 oom, 1 fail; about 04:10 left"; a dash before the first run ends.
std::string totals_line(const host::Totals& totals);
/// "11900" -> "11.9k"
std::string print_rate(double value);

class Progress final : public host::Observer {
 public:
  Progress(std::ostream& out, std::ostream& err, ProgressStyle style);
  ~Progress() override;

  void started(const host::RunView& run, const host::Totals& totals) override;
  void progressed(const host::RunView& run, const host::Totals& totals) override;
  void ended(const host::RunView& run, const host::Totals& totals) override;
  void note(const std::string& text) override;
  /// The last line of a session, and the last event.
  void finish(const host::Totals& totals, int exit_code);

 private:
  void line(const std::string& text);  ///< a line that stays
  void event(const char* name, const host::RunView& run);
  void draw(const host::Totals& totals, bool now);
  void erase();
  int64_t index_of(const host::RunView& run);

  std::ostream& out_;
  std::ostream& err_;
  const ProgressStyle style_;
  std::map<int64_t, int64_t> indices_{};        ///< run_id -> place in this session, from 1
  std::map<int64_t, host::RunView> running_{};  ///< by run_id
  int drawn_lines_ = 0;
  std::chrono::steady_clock::time_point drawn_at_{};
};

}  // namespace assay::cli
