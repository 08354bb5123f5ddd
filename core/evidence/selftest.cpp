// Self-test figures: counts with their exact bounds, and blocks of stored A/A pairs.
#include "core/evidence/selftest.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "assay/error.h"
#include "core/evidence/run_record.h"
#include "core/evidence/timing.h"
#include "core/store/quantile.h"

namespace assay::evidence {
namespace {

using Binomial = boost::math::binomial_distribution<double>;
using store::integer;
using store::Table;
using store::text;
using store::Value;

constexpr double kBoundAlpha = 0.05;
constexpr int64_t kMicro = 1'000'000;

/// The pairs of one block, and its own controls.
std::vector<Pair> block_of(const std::vector<Pair>& pairs, const Design& design, int64_t block) {
  std::vector<Pair> list;
  for (const Pair& p : pairs) {
    const int64_t size = p.stage == 0 ? design.control_pairs : design.pairs;
    if (size > 0 && p.index / size == block) list.push_back(p);
  }
  return list;
}

bool measured(const Pair& p) { return p.value_a && p.value_b; }

/// Planned pairs of the machine's runs in the study, with their values.
std::vector<Pair> pairs_on(const store::Reader& reader, int64_t comparison_id,
                           const std::string& machine_id, const Design& design) {
  const auto ids =
      reader
          .query(
              "SELECT DISTINCT run_id FROM runs JOIN pairs ON run_id IN (run_a, run_b) WHERE"
              " comparison_id=?1 AND machine_id=?2",
              {Value(comparison_id), Value(machine_id)})
          .integers("run_id");
  const auto runs = load_runs(reader, ids);
  std::vector<Pair> pairs = load_pairs(reader, comparison_id);
  std::erase_if(pairs,
                [&](const Pair& p) { return !runs.contains(p.run_a) || !runs.contains(p.run_b); });
  measure_pairs(reader, runs, design, pairs);
  return pairs;
}

}  // namespace

void Tally95::add(Call call, bool counts) {
  ++comparisons;
  called += counts;
  invalid += call == Call::invalid;
}

double Tally95::rate() const {
  return comparisons == 0 ? 0 : static_cast<double>(called) / static_cast<double>(comparisons);
}

double Tally95::upper() const {
  if (comparisons == 0) return 1;
  return Binomial::find_upper_bound_on_p(static_cast<double>(comparisons),
                                         static_cast<double>(called), kBoundAlpha);
}

double Tally95::lower() const {
  if (comparisons == 0) return 0;
  return Binomial::find_lower_bound_on_p(static_cast<double>(comparisons),
                                         static_cast<double>(called), kBoundAlpha);
}

Design selftest_design() {
  Design design;
  design.baseline = design.candidate = kSelftestStudy;
  design.tier.tier = Tier::none;  // equal builds: times alone are in question
  return design;
}

std::vector<Verdict> judge_blocks(const std::vector<Pair>& pairs, const Design& design,
                                  int64_t& open_pairs) {
  std::vector<Verdict> verdicts;
  open_pairs = 0;
  for (int64_t block = 0;; ++block) {
    const std::vector<Pair> mine = block_of(pairs, design, block);
    if (mine.empty()) return verdicts;
    const auto done = std::count_if(mine.begin(), mine.end(), measured);
    if (done < design.pairs + design.control_pairs) {
      open_pairs += done;
      continue;
    }
    verdicts.push_back(time_verdicts(mine, design).back());
  }
}

double extra_work(const std::string& base_config, const std::string& candidate_config) {
  auto base = nlohmann::json::parse(base_config);
  auto candidate = nlohmann::json::parse(candidate_config);
  const auto take = [](nlohmann::json& config) {
    const auto batch = config.at("train").value("global_batch", int64_t{0});
    config["train"].erase("global_batch");
    config["train"].erase("grad_accum");  // follows from it
    return static_cast<double>(batch);
  };
  const double a = take(base), b = take(candidate);
  if (base != candidate || a <= 0 || b < a) {
    throw Error(
        "the cells of a self-test may differ only in train.global_batch, the first has least",
        "see experiments/selftest.yaml");
  }
  return (b - a) / a;
}

std::vector<StoredSelftest> stored_selftests(const store::Reader& reader) {
  const Table rows = reader.query(
      "SELECT c.comparison_id, r.machine_id, b.config_json base, d.config_json candidate,"
      " max(a.ended_us) last_us FROM comparisons c JOIN studies s USING(study_id)"
      " JOIN cells b ON b.cell_id=c.base_cell JOIN cells d ON d.cell_id=c.cand_cell"
      " JOIN pairs p USING(comparison_id) JOIN runs r ON r.run_id=p.run_b"
      " JOIN attempts a USING(run_id) WHERE s.name=?1 GROUP BY c.comparison_id, r.machine_id"
      " ORDER BY c.comparison_id",
      {Value(kSelftestStudy)});
  std::map<std::string, StoredSelftest> machines;
  const Design design = selftest_design();
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    const std::string machine = *text(rows.at(i, "machine_id"));
    StoredSelftest& stored = machines[machine];
    stored.machine_id = machine;
    int64_t open = 0;
    const auto verdicts = judge_blocks(
        pairs_on(reader, *integer(rows.at(i, "comparison_id")), machine, design), design, open);
    stored.add(extra_work(*text(rows.at(i, "base")), *text(rows.at(i, "candidate"))), verdicts);
    stored.open_pairs += open;
    stored.last_us = std::max(stored.last_us, integer(rows.at(i, "last_us")).value_or(0));
  }
  std::vector<StoredSelftest> list;
  for (auto& [machine, stored] : machines) {
    std::sort(stored.injected.begin(), stored.injected.end(),
              [](const Injected& a, const Injected& b) { return a.work < b.work; });
    list.push_back(std::move(stored));
  }
  return list;
}

void StoredSelftest::add(double work, const std::vector<Verdict>& verdicts) {
  for (const Verdict& v : verdicts) {
    if (v.mde) detectable.push_back(std::expm1(*v.mde));
  }
  if (work == 0) {
    for (const Verdict& v : verdicts) {
      equal.add(v.call, v.call == Call::faster || v.call == Call::slower);
    }
    return;
  }
  Injected more{.work = work};
  for (const Verdict& v : verdicts) {
    more.found.add(v.call, v.call == Call::slower);
    if (v.change()) more.changes.push_back(*v.change());
  }
  injected.push_back(std::move(more));
}

std::string tally_text(const Tally95& equal) {
  std::string out =
      fmt::format("{} of {} equal comparisons were called different (95 % bound {:.3f} %)",
                  equal.called, equal.comparisons, 100 * equal.upper());
  if (equal.invalid > 0) out += fmt::format(", {} blocks failed their control", equal.invalid);
  return out;
}

std::string injected_text(const Injected& injected) {
  const Tally95& found = injected.found;
  std::string out = fmt::format("+{:g} % work: found in {} of {}, {:.1f} % (at least {:.1f} %)",
                                std::round(1e4 * injected.work) / 100, found.called,
                                found.comparisons, 100 * found.rate(), 100 * found.lower());
  if (!injected.changes.empty()) {
    out += fmt::format(", step time {:+.1f} %", 100 * *store::quantile(injected.changes, 0.5));
  }
  return out;
}

std::string detectable_text(const StoredSelftest& stored) {
  if (stored.detectable.empty()) return "";
  const auto at = [&](double q) { return 100 * *store::quantile(stored.detectable, q); };
  return fmt::format(
      "{} pairs could find {:.1f} % in the middle of {} comparisons ({:.1f} to {:.1f} %)",
      selftest_design().pairs, at(0.5), stored.detectable.size(), at(0), at(1));
}

std::string selftest_note(const std::vector<StoredSelftest>& all, const std::string& machine_id,
                          const std::string& separator) {
  for (const StoredSelftest& stored : all) {
    if (stored.machine_id != machine_id || stored.equal.comparisons == 0) continue;
    std::string note = fmt::format("self-test on this machine, last run {:%Y-%m-%d} UTC: {}",
                                   fmt::gmtime(static_cast<std::time_t>(stored.last_us / kMicro)),
                                   tally_text(stored.equal));
    for (const Injected& i : stored.injected) {
      if (i.found.comparisons > 0) note += separator + injected_text(i);
    }
    if (const std::string text = detectable_text(stored); !text.empty()) note += separator + text;
    return note;
  }
  return "";
}

}  // namespace assay::evidence
