// assay selftest: how often the verdicts are wrong, measured on this machine or simulated.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "assay/error.h"
#include "core/base/diagnostic.h"
#include "core/base/units.h"
#include "core/cli/commands.h"
#include "core/cli/comparing.h"
#include "core/cli/supervise.h"
#include "core/cli/tuning.h"
#include "core/cli/view.h"
#include "core/evidence/selftest.h"
#include "core/host/machine.h"
#include "core/host/selftest.h"
#include "core/host/study.h"

namespace assay::cli {
namespace {

using evidence::Injected;
using evidence::Noise;
using evidence::Simulated;
using evidence::StoredSelftest;
using nlohmann::json;
using std::chrono::steady_clock;

constexpr int kOutside = 1, kNothingMeasured = 4, kStopped = 128;
constexpr const char* kNoInjection = "power on this machine: not measured yet";
const std::set<std::string> kNoises = {"drift", "heavy"};

struct SelftestArguments {
  std::filesystem::path file{};
  std::string budget{};
  bool simulate = false, last = false;
  uint64_t seed = 1;
  evidence::SimulationSize size{};
  std::vector<double> percents = {1, 2, 3, 5};
  std::string noise{};
};

json tally_json(const evidence::Tally95& t) {
  return {{"comparisons", t.comparisons}, {"called", t.called},
          {"invalid", t.invalid},         {"rate", t.rate()},
          {"lower", t.lower()},           {"upper", t.upper()}};
}

// ---- simulated ----

std::string simulated_text(const Simulated& s) {
  std::string out =
      fmt::format("{:<8} {:<6} equal: {} of {} called different, {:.3f} % (95 % bound {:.3f} %)",
                  s.method, name_of(s.noise), s.equal.called, s.equal.comparisons,
                  100 * s.equal.rate(), 100 * s.equal.upper());
  out += fmt::format(", {} failed their control\n", s.equal.invalid);
  for (const Injected& i : s.injected) out += "                " + injected_text(i) + "\n";
  return out;
}

json injected_json(const std::vector<Injected>& injected) {
  json list = json::array();
  for (const Injected& i : injected) {
    list.push_back({{"work", i.work}, {"found", tally_json(i.found)}, {"changes", i.changes}});
  }
  return list;
}

json simulated_json(const Simulated& s) {
  return {{"method", s.method},
          {"noise", name_of(s.noise)},
          {"pairs", s.pairs},
          {"equal", tally_json(s.equal)},
          {"injected", injected_json(s.injected)},
          {"within_band", s.within_band()}};
}

void simulate(const SelftestArguments& arguments, Context& context) {
  std::vector<double> work;
  for (const double percent : arguments.percents) work.push_back(percent / 100);
  std::vector<Simulated> all;
  for (const Noise noise : {Noise::drift, Noise::heavy}) {
    if (!arguments.noise.empty() && arguments.noise != name_of(noise)) continue;
    auto more = evidence::simulate_selftest(noise, arguments.seed, arguments.size, work);
    all.insert(all.end(), more.begin(), more.end());
  }
  bool within = true;
  for (const Simulated& s : all) within = within && s.within_band();
  if (context.json) {
    json list = json::array();
    for (const Simulated& s : all) list.push_back(simulated_json(s));
    *context.out << json{{"schema_version", 1},
                         {"simulated", true},
                         {"seed", arguments.seed},
                         {"methods", list}}
                        .dump(2)
                 << "\n";
  } else {
    *context.out << "simulated, seed " << arguments.seed
                 << ": times are drawn, the verdict code is "
                 << "the real one; nothing here is a figure of this machine\n";
    for (const Simulated& s : all) *context.out << simulated_text(s);
    *context.out << (within ? "within" : "outside")
                 << " the band: at most 0.5 % false, compare finds "
                 << "+3 % in at least 90 %\n";
  }
  if (!within) context.exit_code = kOutside;
}

// ---- on this machine ----

std::string machine_here(const Context& context) {
  return host::this_env(context.binaries().libtorch).machine_id;
}

bool any_injected(const StoredSelftest& stored) {
  return std::any_of(stored.injected.begin(), stored.injected.end(),
                     [](const Injected& i) { return i.found.comparisons > 0; });
}

void report(Context& context) {
  const store::Reader reader(context.database);
  const std::string machine = machine_here(context);
  const auto all = evidence::stored_selftests(reader);
  const auto found = std::ranges::find(all, machine, &StoredSelftest::machine_id);
  const StoredSelftest here = found == all.end() ? StoredSelftest{} : *found;
  const auto& equal = here.equal;
  if (context.json) {
    *context.out << json{{"schema_version", 1},          {"simulated", false},
                         {"equal", tally_json(equal)},   {"open_pairs", here.open_pairs},
                         {"last_us", here.last_us},      {"injected", injected_json(here.injected)},
                         {"detectable", here.detectable}}
                        .dump()
                 << "\n";
  } else if (equal.comparisons == 0) {
    *context.out << "no comparison is whole yet: " << here.open_pairs
                 << " pairs of 28 (20 and 8 controls) are measured\n";
  } else {
    *context.out << evidence::selftest_note(all, machine, "\n  ") << "\n";
    if (equal.comparisons - equal.invalid < evidence::kSelftestClaim) {
      *context.out << "a rate of at most 0.5 % is claimed from " << evidence::kSelftestClaim
                   << " comparisons on; run this again to add some\n";
    }
  }
  if (!context.json && !any_injected(here)) *context.out << kNoInjection << "\n";
  context.exit_code = equal.comparisons == 0                   ? kNothingMeasured
                      : equal.rate() > evidence::kSelftestBand ? kOutside
                                                               : 0;
}

/// The study of the file, or the stored one.
store::StudyInfo selftest_study(store::Store& store, const SelftestArguments& arguments,
                                Context& context) {
  if (!arguments.file.empty()) {
    const grid::Plan plan = grid::plan(plan_request(context, arguments.file));
    *context.err << render(plan.diagnostics);
    require_untuned(plan, "the self-test");
    if (plan.study != evidence::kSelftestStudy) {
      throw Error("'" + arguments.file.string() + "' must be a study named 'selftest', not '" +
                      plan.study + "'",
                  "see experiments/selftest.yaml");
    }
    host::store_plan(store, plan);
  }
  const store::Reader reader(store.file());
  for (store::StudyInfo& study : reader.studies()) {
    if (study.name == evidence::kSelftestStudy) return study;
  }
  throw Error("the database holds no study 'selftest' yet",
              "give it one: assay selftest experiments/selftest.yaml --budget 30m");
}

void measure(const SelftestArguments& arguments, Context& context) {
  const auto budget = parse_duration(arguments.budget);
  if (!budget || *budget <= 0) {
    throw Error("--budget '" + arguments.budget + "' is no duration", "it reads like 30m or 2h");
  }
  const auto end = steady_clock::now() + std::chrono::nanoseconds(*budget);
  store::Store store(context.database);
  const store::StudyInfo study = selftest_study(store, arguments, context);
  const std::string machine = machine_here(context);
  SuperviseFlags flags;
  flags.table = false;
  flags.no_pair_ends_after = end;
  // A comparison at a time: what a stop leaves is the next call's first.
  do {
    host::schedule_selftest(store, study.study_id, machine);
    supervise(store, study.study_id, study.name, host::run_keys(study.resolved_json), flags,
              context);
    if (context.exit_code != 0) break;
  } while (steady_clock::now() < end);
  if (context.exit_code > kStopped) return;
  report(context);
}

void selftest(const SelftestArguments& arguments, Context& context) {
  if (arguments.simulate) return simulate(arguments, context);
  if (arguments.last) return report(context);
  if (arguments.budget.empty()) {
    throw Error(
        "how long may it take?",
        "--budget 30m runs comparisons here, --simulate draws them, --last shows the figures");
  }
  measure(arguments, context);
}

}  // namespace

void add_selftest(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<SelftestArguments>();
  CLI::App* command = app.add_subcommand(
      "selftest",
      "How often verdicts are wrong: a cell against itself and more work, or drawn noise");
  command->add_option("file", arguments->file, "Study 'selftest' (default: the stored one)");
  command->add_option("--budget", arguments->budget, "Run comparisons until then; they accumulate")
      ->type_name("TIME");
  command->add_flag("--last", arguments->last, "Show the stored figures of this machine");
  command->add_flag("--simulate", arguments->simulate,
                    "Draw the times instead of running anything");
  command->add_option("--seed", arguments->seed, "Of the simulation (1)")->type_name("N");
  command
      ->add_option("--noise", arguments->noise, "Of the simulation: drift or heavy (default: both)")
      ->check(CLI::IsMember(kNoises).description(""))
      ->type_name("MODEL");
  command->add_option("--equal", arguments->size.equal, "Simulated equal comparisons (2000)")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}).description(""))
      ->type_name("N");
  command
      ->add_option("--injected", arguments->size.injected, "Simulated comparisons per size (500)")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}).description(""))
      ->type_name("N");
  command->add_option("--inject", arguments->percents, "Simulated extra work, % (1,2,3,5)")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 100.0).description(""))
      ->type_name("P,...");
  command->footer(R"(
Exit code: 0, 1 more than 0.5 % false verdicts (simulated: or +3 % found by compare in less than
90 %), 2 usage, 4 no whole comparison.

Examples:
  assay selftest --simulate
  assay selftest experiments/selftest.yaml --budget 30m
  assay selftest --budget 2h                             goes on with the stored study
  assay selftest --last)");
  command->callback([arguments, &context] { selftest(*arguments, context); });
}

}  // namespace assay::cli
