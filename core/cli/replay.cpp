// assay replay RUN: runs a stored run again and says whether the result agrees.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <set>

#include "core/base/diagnostic.h"
#include "core/cli/commands.h"
#include "core/cli/supervise.h"
#include "core/cli/view.h"
#include "core/evidence/loss.h"
#include "core/evidence/run_record.h"
#include "core/host/machine.h"
#include "core/host/replay.h"
#include "core/host/study.h"
#include "core/plugin/catalogue.h"

namespace assay::cli {
namespace {

using evidence::Call;
using evidence::RunRecord;
using host::Changed;
using host::Replay;
using nlohmann::json;

constexpr int kDisagrees = 1, kNotShown = 3, kInfrastructure = 4;
constexpr size_t kShownDigits = 12;
const std::set<std::string> kTiers = {"T0", "T1", "T2"};

struct ReplayArguments {
  int64_t run_id = 0;
  bool accept_binaries = false;
  std::string tier{};
};

/// What came of it.
struct Outcome {
  RunRecord then{}, now{};
  std::string reason{};  ///< why the new run did not end well
  evidence::TierChoice tier{};
  std::optional<evidence::Verdict> loss{};  ///< nothing unless both ended well
  std::optional<double> time_then_s{}, time_now_s{};

  Call call() const {
    if (loss) return loss->call;
    return then.state == now.state ? Call::parity : Call::no_parity;
  }
};

host::Installed installed(const Context& context) {
  host::Installed here;
  here.binaries = context.binaries();
  here.env = host::this_env(here.binaries.libtorch);
  here.plugin_folders = plugin_folders(context.plugin_path);
  return here;
}

Outcome judge(const store::Reader& reader, const Replay& replay, int64_t again,
              const std::string& tier) {
  const std::vector<int64_t> ids = {replay.run_id, again};
  const auto runs = evidence::load_runs(reader, ids);
  Outcome outcome{.then = runs.at(replay.run_id), .now = runs.at(again)};
  const auto reason =
      reader.query("SELECT reason FROM attempts WHERE run_id=?1 ORDER BY n DESC LIMIT 1", {again});
  if (!reason.empty()) outcome.reason = store::text(reason.at(0, "reason")).value_or("");
  outcome.tier = host::replay_tier(replay);
  if (!tier.empty()) outcome.tier = {evidence::tier_of(tier), {"--loss-tier"}};
  if (!outcome.then.ok() || !outcome.now.ok()) return outcome;
  outcome.loss = evidence::judge_again(reader, outcome.tier.tier, outcome.then, outcome.now);
  const auto p10 = [&](const RunRecord& run) -> std::optional<double> {
    if (!run.has_timing()) return std::nullopt;
    return evidence::step_times(reader, run, *run.steady_first, "p10").statistic;
  };
  outcome.time_then_s = p10(outcome.then);
  outcome.time_now_s = p10(outcome.now);
  return outcome;
}

std::string shown(const Changed& c, const std::string& value) {
  if (value.empty()) return "none";
  const bool hash = c.what != Changed::What::libtorch && c.what != Changed::What::machine;
  return hash ? value.substr(0, kShownDigits) : value;
}

std::string changes_text(const Replay& replay) {
  if (replay.changed.empty()) return "  environment      as it was\n";
  std::string out;
  for (const Changed& c : replay.changed) {
    out += fmt::format("  {:<15}  {} -> {}\n", c.name, shown(c, c.then), shown(c, c.now));
  }
  return out;
}

std::string loss_text(const Outcome& o) {
  const evidence::Verdict& v = *o.loss;
  std::string text = fmt::format("{}  {}: ", name_of(o.tier.tier), name_of(v.call));
  if (o.tier.tier == evidence::Tier::t0 && v.call == Call::parity) {
    const bool checksum =
        std::find(v.labels.begin(), v.labels.end(), "no_checksum") == v.labels.end();
    text += fmt::format("loss and gradient norm of {} steps{} are equal in bits", v.n_used,
                        checksum ? " and the parameter checksum" : "");
    if (!checksum) text += "; no parameter checksum was recorded";
  } else {
    text += v.reason.empty() ? std::string("within the envelope") : v.reason;
  }
  text += "\n";
  for (const std::string& why : o.tier.evidence) text += "    " + why + "\n";
  return text;
}

std::string time_text(const Outcome& o) {
  if (!o.time_then_s || !o.time_now_s) return "step time p10: not measured in both\n";
  return fmt::format(
      "step time p10 {:.6g} s then, {:.6g} s now ({:+.1f} %): two runs, no verdict\n",
      *o.time_then_s, *o.time_now_s, 100 * (*o.time_now_s / *o.time_then_s - 1));
}

std::string as_text(const Replay& replay, const Outcome& o) {
  std::string out = fmt::format("run {} ended {}, run {} ended {}\n", replay.run_id, o.then.state,
                                o.now.run_id, o.now.state);
  if (!o.then.ok() && !replay.reason.empty()) out += "  then: " + replay.reason + "\n";
  if (!o.now.ok() && !o.reason.empty()) out += "  now:  " + o.reason + "\n";
  out += o.loss ? loss_text(o) + time_text(o) : std::string();
  const Call call = o.call();
  out += call == Call::parity      ? "the result agrees\n"
         : call == Call::no_parity ? "the result does not agree\n"
                                   : "whether the result agrees is not shown\n";
  return out;
}

json as_json(const Replay& replay, const Outcome& o, const host::QueuedReplay& queued) {
  json changed = json::array();
  for (const Changed& c : replay.changed) {
    changed.push_back({{"what", c.name}, {"then", c.then}, {"now", c.now}});
  }
  const auto number = [](const std::optional<double>& x) { return x ? json(*x) : json(); };
  return {{"schema_version", 1},
          {"event", "replay"},
          {"run", {{"run_id", replay.run_id}, {"state", o.then.state}}},
          {"replay", {{"run_id", o.now.run_id}, {"state", o.now.state}, {"study", queued.study}}},
          {"changed", changed},
          {"tier", name_of(o.tier.tier)},
          {"tier_evidence", o.tier.evidence},
          {"result", name_of(o.call())},
          {"loss", o.loss ? to_json(*o.loss) : json()},
          {"step_p10_s", {{"then", number(o.time_then_s)}, {"now", number(o.time_now_s)}}}};
}

int exit_code(const Outcome& o, int supervised) {
  const std::string& state = o.now.state;
  const bool ended =
      state != "queued" && state != "running" && state != "killed" && state != "infra";
  if (!ended) return supervised != 0 ? supervised : kInfrastructure;
  return o.call() == Call::parity ? 0 : o.call() == Call::no_parity ? kDisagrees : kNotShown;
}

void replay_run(const ReplayArguments& arguments, Context& context) {
  const host::Installed here = installed(context);
  const Replay replay = [&] {
    const store::Reader reader(context.database);
    return host::plan_replay(reader, arguments.run_id, here);
  }();
  if (!context.json && context.verbosity >= 0) {
    *context.out << "replay of run " << replay.run_id << "  " << replay.cell.slug << "  study "
                 << replay.study.name << "\n"
                 << changes_text(replay) << std::flush;
  }
  const auto refusals = host::standing(replay, arguments.accept_binaries);
  if (!refusals.empty()) throw DiagnosticError(refusals);
  store::Store store(context.database);
  const host::QueuedReplay queued = host::queue_replay(store, replay, here);
  supervise_runs(store, queued.study_id, queued.study, host::run_keys(replay.study.resolved_json),
                 {queued.run_id}, {}, context);
  const store::Reader reader(context.database);
  const Outcome outcome = judge(reader, replay, queued.run_id, arguments.tier);
  context.exit_code = exit_code(outcome, context.exit_code);
  if (context.json) {
    *context.out << as_json(replay, outcome, queued).dump() << "\n";
  } else {
    *context.out << as_text(replay, outcome);
  }
}

}  // namespace

void add_replay(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ReplayArguments>();
  CLI::App* command = app.add_subcommand(
      "replay", "Runs a stored run again, from the database alone, and compares the results");
  command->add_option("run", arguments->run_id, "Number of the run (assay status)")
      ->required()
      ->type_name("RUN");
  command->add_flag("--accept-binaries", arguments->accept_binaries,
                    "Replay with plugin files that are not the ones that ran");
  command
      ->add_option("--loss-tier", arguments->tier,
                   "T0 (bits), T1 (order of sums), T2 (default: as hardware and LibTorch ask)")
      ->check(CLI::IsMember(kTiers).description(""))
      ->type_name("TIER");
  command->footer(R"(
Configuration, seed and plugin files (by hash) come from the database. What differs in the
environment is printed before anything runs. With other binaries the new run belongs to a cell of
its own, in the study NAME-replay.
Exit code: 0 the result agrees, 1 it does not, 2 refused, 3 not shown, 4 the run did not end.

Examples:
  assay replay 118
  assay replay 118 --accept-binaries
  assay replay 118 --json)");
  command->callback([arguments, &context] { replay_run(*arguments, context); });
}

}  // namespace assay::cli
