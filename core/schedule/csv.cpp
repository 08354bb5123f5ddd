// Reading of schedule files, with the place of every problem, and writing.
#include "core/schedule/csv.h"

#include <algorithm>
#include <string_view>

#include "assay/error.h"
#include "assay/files.h"
#include "core/schedule/validate.h"

namespace assay {
namespace {

constexpr const char* kRule = "R-CSV";

/// Where an action stands in the file.
struct Place {
  int column = 1;  ///< 1-based
  int length = 1;
};

class Reader {
 public:
  Reader(const std::string& text, std::string file) : file_(std::move(file)) {
    std::string_view rest = text;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      std::string_view line = rest.substr(0, end);
      if (line.ends_with('\r')) line.remove_suffix(1);
      lines_.emplace_back(line);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    while (!lines_.empty() && lines_.back().find_first_not_of(" \t") == std::string::npos) {
      lines_.pop_back();
    }
  }

  ScheduleReading read(int64_t ranks, int64_t microbatches) {
    if (lines_.empty()) {
      problem(0, {}, "the file has no schedule in it", "one row per rank: 0F0,0F1,0B0,0B1");
    }
    for (size_t rank = 0; rank < lines_.size(); ++rank) read_row(rank);
    if (reading_.problems.empty()) check(ranks, microbatches);
    return std::move(reading_);
  }

 private:
  void read_row(size_t rank) {
    const std::string& line = lines_[rank];
    ActionList& list = reading_.file.lists.emplace_back();
    std::vector<Place>& places = places_.emplace_back();
    for (size_t begin = 0; begin <= line.size();) {
      const size_t end = std::min(line.find(',', begin), line.size());
      const size_t first = line.find_first_not_of(" \t", begin);
      const size_t last = line.find_last_not_of(" \t", end == 0 ? 0 : end - 1);
      if (first < end && last != std::string::npos && last >= first) {
        read_cell(rank, line.substr(first, last - first + 1),
                  {static_cast<int>(first) + 1, static_cast<int>(last - first) + 1}, list, places);
      }
      begin = end + 1;
    }
  }

  void read_cell(size_t rank, const std::string& cell, const Place& place, ActionList& list,
                 std::vector<Place>& places) {
    try {
      for (const Action& action : parse_cell(cell)) {
        list.push_back(action);
        places.push_back(place);
      }
    } catch (const Error& error) {
      problem(rank, place, error.what(), error.hint());
    }
  }

  void check(int64_t ranks, int64_t microbatches) {
    ScheduleFile& file = reading_.file;
    if (ranks > 0 && std::ssize(file.lists) != ranks) {
      problem(lines_.size() - 1, {},
              "the schedule has " + std::to_string(file.lists.size()) + " rows for " +
                  std::to_string(ranks) + " ranks",
              "one row per rank");
      return;
    }
    ScheduleCheck found = validate(file.lists, microbatches);
    for (const ScheduleProblem& wrong : found.problems) {
      const std::vector<Place>& row = places_[wrong.rank];
      const Place end{static_cast<int>(lines_[wrong.rank].size()) + 1, 1};
      problem(wrong.rank, wrong.index < row.size() ? row[wrong.index] : end, wrong.text, "");
      reading_.problems.back().details = wrong.details;
    }
    file.rank_of_stage = std::move(found.rank_of_stage);
    file.microbatches = found.microbatches;
    file.lowered = found.lowered;
  }

  void problem(size_t rank, const Place& place, const std::string& text, const std::string& hint) {
    const int line = static_cast<int>(rank) + 1;
    Diagnostic diagnostic{.id = kRule, .text = text, .line = line, .column = place.column};
    diagnostic.length = place.length;
    diagnostic.place = file_ + ":" + std::to_string(line) + ":" + std::to_string(place.column);
    if (rank < lines_.size()) diagnostic.source_line = lines_[rank];
    if (!hint.empty()) diagnostic.hints.push_back(hint);
    reading_.problems.push_back(std::move(diagnostic));
  }

  const std::string file_;
  std::vector<std::string> lines_{};
  std::vector<std::vector<Place>> places_{};  // of each action of each row
  ScheduleReading reading_{};
};

}  // namespace

ScheduleReading parse_schedule_csv(const std::string& text, const std::string& file, int64_t ranks,
                                   int64_t microbatches) {
  return Reader(text, file).read(ranks, microbatches);
}

ScheduleFile read_schedule_csv(const std::filesystem::path& file) {
  ScheduleReading reading = parse_schedule_csv(read_file(file), file.string());
  if (reading.problems.empty()) return std::move(reading.file);
  const Diagnostic& first = reading.problems.front();
  std::string text = std::string(kRule) + ": " + first.place + ": " + first.text;
  for (const std::string& detail : first.details) text += "; " + detail;
  throw Error(text,
              first.hints.empty() ? "assay schedule check " + file.string() : first.hints.front());
}

std::string print_schedule_csv(const std::vector<ActionList>& lists) {
  std::string text;
  for (const ActionList& list : lists) text += print(list) + "\n";
  return text;
}

}  // namespace assay
