// assay gc: lets old files of runs and caches go; shows them first, deletes only when told.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <ostream>

#include "assay/error.h"
#include "core/base/clock.h"
#include "core/base/files.h"
#include "core/base/units.h"
#include "core/cli/commands.h"
#include "core/cli/view.h"
#include "core/store/retention.h"

namespace assay::cli {
namespace {

using store::Keepsake;

constexpr int64_t kDayUs = int64_t{86400} * 1'000'000;
constexpr Keepsake kAllKinds[] = {Keepsake::spools, Keepsake::logs, Keepsake::checkpoints,
                                  Keepsake::caches};

struct GcArguments {
  std::string older = "30d";
  std::vector<std::string> kinds{};
  bool yes = false;
};

/// "30d", or a duration as everywhere else.
int64_t parse_age(const std::string& text) {
  if (text.ends_with('d')) {
    const auto days = parse_integer(text.substr(0, text.size() - 1));
    if (days && *days >= 0) return *days * kDayUs;
  }
  const auto ns = parse_duration(text);
  if (ns && *ns >= 0) return *ns / 1000;
  throw Error("--older must be an age: 30d, 12h, 90m; got '" + text + "'");
}

std::set<Keepsake> kinds_of(const std::vector<std::string>& names) {
  std::set<Keepsake> kinds;
  for (const Keepsake kind : kAllKinds) {
    const bool named = std::find(names.begin(), names.end(), name_of(kind)) != names.end();
    if (names.empty() || named) kinds.insert(kind);
  }
  return kinds;
}

struct Sum {
  int64_t files = 0, bytes = 0;
};

std::map<Keepsake, Sum> sums_of(const store::RetentionPlan& plan) {
  std::map<Keepsake, Sum> sums;
  for (const store::Disposable& item : plan.disposable) {
    ++sums[item.kind].files;
    sums[item.kind].bytes += item.bytes;
  }
  return sums;
}

void print_plan(const store::RetentionPlan& plan, const Context& context) {
  std::ostream& out = *context.out;
  for (const store::Disposable& item : plan.disposable) {
    if (context.verbosity < 0) break;
    out << name_of(item.kind) << "  " << print_bytes(item.bytes) << "  " << item.path.string()
        << "\n";
  }
  for (const std::string& line : plan.kept) out << "kept  " << line << "\n";
  for (const auto& [kind, sum] : sums_of(plan)) {
    out << name_of(kind) << ": " << sum.files << " files, " << print_bytes(sum.bytes) << "\n";
  }
}

nlohmann::json plan_json(const store::RetentionPlan& plan, bool deleted) {
  nlohmann::json files = nlohmann::json::array();
  for (const store::Disposable& item : plan.disposable) {
    files.push_back({{"kind", name_of(item.kind)},
                     {"path", item.path.string()},
                     {"bytes", item.bytes},
                     {"run_id", item.run_id}});
  }
  return {{"schema_version", 1},
          {"files", files},
          {"kept", plan.kept},
          {"bytes", plan.bytes},
          {"deleted", deleted}};
}

void collect(const GcArguments& arguments, const Context& context) {
  const store::Reader reader(context.database);
  const store::RetentionPolicy policy{.kinds = kinds_of(arguments.kinds),
                                      .older_us = parse_age(arguments.older)};
  const auto runs = context.database.parent_path() / "runs";
  const store::RetentionPlan plan = plan_retention(reader, runs, cache_dir(), policy, now_us());
  if (!context.json) print_plan(plan, context);
  const int64_t freed = arguments.yes ? delete_all(plan) : 0;
  if (context.json) {
    *context.out << plan_json(plan, arguments.yes).dump() << "\n";
  } else if (plan.disposable.empty()) {
    *context.out << "nothing is older than " << arguments.older << " and disposable\n";
  } else if (arguments.yes) {
    *context.out << "deleted: " << print_bytes(freed) << " are free\n";
  } else {
    *context.out << "nothing was deleted; this deletes it: assay gc --older " << arguments.older
                 << " --yes" << database_flag(context) << "\n";
  }
}

}  // namespace

void add_gc(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<GcArguments>();
  CLI::App* command = app.add_subcommand("gc", "Let old spools, logs, checkpoints and caches go");
  command->add_option("--older", arguments->older, "Only what ended so long ago (default: 30d)")
      ->type_name("AGE");
  command
      ->add_option("--kinds", arguments->kinds,
                   "Comma list of spools, logs, checkpoints, caches (default: all)")
      ->delimiter(',')
      ->check(CLI::IsMember({"spools", "logs", "checkpoints", "caches"}).description(""))
      ->type_name("LIST");
  command->add_flag("--yes,--apply", arguments->yes, "Delete; without it they are only listed");
  command->footer(R"(
The database keeps every sample, state and figure. Never deleted: files of a running attempt, of a
run that a baseline names, a spool with a byte that is not imported yet, files that the database
does not know.

Examples:
  assay gc --older 7d
  assay gc --older 12h --kinds spools,caches --yes)");
  command->callback([arguments, &context] { collect(*arguments, context); });
}

}  // namespace assay::cli
