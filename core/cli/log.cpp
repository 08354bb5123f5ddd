// assay log RUN: what the ranks of a run printed.
#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include <memory>
#include <ostream>
#include <thread>

#include "assay/error.h"
#include "core/cli/commands.h"
#include "core/cli/view.h"
#include "core/report/rows.h"

namespace assay::cli {
namespace {

using store::integer;
using store::text;

constexpr std::chrono::milliseconds kFollowInterval{200};

struct LogArguments {
  int64_t run_id = 0;
  int64_t rank = -1;
  int64_t lines = 200;
  bool follow = false;
};

/// The newest attempt of a run.
struct AttemptLog {
  int64_t attempt = 0;
  std::string slug{}, state{}, reason{}, stderr_tail{};
  std::filesystem::path file{};
};

std::filesystem::path rank_file(const std::filesystem::path& recorded, int64_t rank) {
  if (rank < 0 || recorded.empty()) return recorded;
  return recorded.parent_path() / ("rank" + std::to_string(rank) + ".log");
}

[[noreturn]] void no_run(const store::Reader& reader, int64_t run_id) {
  const store::Table range = reader.query("SELECT min(run_id) lo, max(run_id) hi FROM runs");
  const auto low = integer(range.at(0, "lo"));
  throw Error("there is no run " + std::to_string(run_id) + " in '" + reader.file().string() + "'",
              low ? "runs " + std::to_string(*low) + " to " +
                        std::to_string(*integer(range.at(0, "hi"))) + " are there: assay status"
                  : "the database holds no run yet: assay run STUDY.yaml");
}

AttemptLog find_log(const store::Reader& reader, const LogArguments& arguments) {
  const store::Table row = reader.query(
      "SELECT r.state, a.n, a.reason, a.stderr_tail, a.log_path, (SELECT slug FROM study_cells s "
      "WHERE"
      " s.cell_id=r.cell_id ORDER BY study_id DESC LIMIT 1) slug FROM runs r LEFT JOIN attempts a "
      "ON"
      " a.run_id=r.run_id AND a.n=(SELECT max(n) FROM attempts b WHERE b.run_id=r.run_id)"
      " WHERE r.run_id=?1",
      {arguments.run_id});
  if (row.empty()) no_run(reader, arguments.run_id);
  if (!integer(row.at(0, "n"))) {
    throw Error("run " + std::to_string(arguments.run_id) + " has not started: it is " +
                    *text(row.at(0, "state")),
                "assay status shows the queue");
  }
  return {.attempt = *integer(row.at(0, "n")),
          .slug = text(row.at(0, "slug")).value_or("?"),
          .state = *text(row.at(0, "state")),
          .reason = text(row.at(0, "reason")).value_or(""),
          .stderr_tail = text(row.at(0, "stderr_tail")).value_or(""),
          .file = rank_file(text(row.at(0, "log_path")).value_or(""), arguments.rank)};
}

std::string head_line(const AttemptLog& log, int64_t run_id) {
  std::string line = "run " + std::to_string(run_id) + "  " + log.slug + "  attempt " +
                     std::to_string(log.attempt) + "  " + report::state_label(log.state);
  if (!log.reason.empty()) line += ": " + log.reason;
  return line + "\n" + log.file.string() + "\n";
}

/// The last `lines` lines; 0 = all.
std::string last_lines(const std::string& content, int64_t lines) {
  if (lines <= 0) return content;
  size_t at = content.size();
  if (at > 0 && content[at - 1] == '\n') --at;
  for (int64_t seen = 0; at > 0; --at) {
    if (content[at - 1] == '\n' && ++seen == lines) break;
  }
  return content.substr(at);
}

/// Prints what is added to the file until the run is over.
void follow(const store::Reader& reader, const LogArguments& arguments, std::ifstream& in,
            std::ostream& out) {
  while (true) {
    const bool running = find_log(reader, arguments).state == "running";
    in.clear();
    std::string more(std::istreambuf_iterator<char>(in), {});
    out << more << std::flush;
    if (!running) return;
    std::this_thread::sleep_for(kFollowInterval);
  }
}

void print_missing(const AttemptLog& log, const Context& context) {
  if (log.stderr_tail.empty()) {
    throw Error("the log '" + log.file.string() + "' is gone, and the database has no part of it",
                "logs are beside the database, in the folder of the run");
  }
  *context.err << "the file is gone; the end of it, as the database keeps it:\n";
  *context.out << log.stderr_tail;
}

void show_log(const LogArguments& arguments, const Context& context) {
  const store::Reader reader(context.database);
  const AttemptLog log = find_log(reader, arguments);
  if (context.verbosity >= 0) *context.err << head_line(log, arguments.run_id);
  std::ifstream in(log.file, std::ios::binary);
  if (log.file.empty() || !in) return print_missing(log, context);
  const std::string content(std::istreambuf_iterator<char>(in), {});
  *context.out << last_lines(content, arguments.lines);
  if (arguments.follow) follow(reader, arguments, in, *context.out);
}

}  // namespace

void add_log(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<LogArguments>();
  CLI::App* command = app.add_subcommand("log", "What a run printed");
  command->add_option("run", arguments->run_id, "Number of the run (assay status)")
      ->required()
      ->type_name("RUN");
  command->add_option("--rank", arguments->rank, "One rank (default: the one that failed, or 0)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("-n,--lines", arguments->lines, "Last lines shown (default 200, 0 = all)")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--follow", arguments->follow, "Go on until the run ends");
  command->footer(R"(
Examples:
  assay log 118
  assay log 118 --rank 1 --follow)");
  command->callback([arguments, &context] { show_log(*arguments, context); });
}

}  // namespace assay::cli
