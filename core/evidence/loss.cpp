// Choosing runs for the loss tests, and calling the test of the tier.
#include "core/evidence/loss.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "core/evidence/curves.h"
#include "core/evidence/run_record.h"
#include "core/evidence/seeds.h"
#include "core/evidence/tier.h"

namespace assay::evidence {
namespace {

using nlohmann::json;
using store::text;
using store::Value;

constexpr double kShortestSchedule = 0.90, kLongestSchedule = 0.97;
const std::set<std::string> kHonest = {"train.micro_batch", "train.grad_accum",
                                       "train.threads_per_rank"};

/// The first run of a cell that ended well.
std::optional<RunRecord> first_run(const store::Reader& reader, const std::string& cell_id) {
  const std::vector<int64_t> ids = ok_runs(reader, cell_id);
  if (ids.empty()) return std::nullopt;
  auto runs = load_runs(reader, std::span(ids).first(1));
  return std::move(runs.begin()->second);
}

/// Both runs of one seed.
struct SeedRuns {
  int64_t seed = 0;
  RunRecord base{}, candidate{};
};

/// Seeds that both arms have run; one cell against itself gives its first two runs.
std::vector<SeedRuns> paired_runs(const store::Reader& reader, const Arm& base,
                                  const Arm& candidate) {
  std::vector<SeedRuns> pairs;
  for (const Arm::Seed& a : base.seeds) {
    const auto b = std::find_if(candidate.seeds.begin(), candidate.seeds.end(),
                                [&](const Arm::Seed& s) { return s.seed == a.seed; });
    if (b == candidate.seeds.end()) continue;
    const std::vector<int64_t> runs_a = ok_runs(reader, a.cell_id),
                               runs_b = ok_runs(reader, b->cell_id);
    const size_t second = a.cell_id == b->cell_id ? 1 : 0;
    if (runs_a.empty() || runs_b.size() <= second) continue;
    const std::vector<int64_t> ids = {runs_a.front(), runs_b[second]};
    const auto runs = load_runs(reader, ids);
    pairs.push_back({.seed = a.seed, .base = runs.at(ids[0]), .candidate = runs.at(ids[1])});
  }
  return pairs;
}

json config_of(const store::Reader& reader, const std::string& cell_id) {
  const store::Table row =
      reader.query("SELECT config_json FROM cells WHERE cell_id=?1", {Value(cell_id)});
  return json::parse(*text(row.at(0, "config_json")));
}

struct OtherCell {
  std::string cell_id{};
  json config{};
};

/// Cells with a run that ended well, of the same data as `cell_id`.
std::vector<OtherCell> cells_like(const store::Reader& reader, const std::string& cell_id) {
  const store::Table rows = reader.query(
      "SELECT DISTINCT c.cell_id, c.config_json FROM cells c JOIN runs r USING(cell_id) WHERE"
      " r.state='ok' AND c.cell_id<>?1 AND c.data_fingerprint=(SELECT data_fingerprint FROM cells"
      " WHERE cell_id=?1)",
      {Value(cell_id)});
  std::vector<OtherCell> cells;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    cells.push_back({*text(rows.at(i, "cell_id")), json::parse(*text(rows.at(i, "config_json")))});
  }
  return cells;
}

/// Series of the cell's runs of purpose `envelope`: its steps' rows in other orders.
std::vector<BitSeries> envelope_series(const store::Reader& reader, const std::string& cell_id) {
  const auto ids = reader
                       .query(
                           "SELECT run_id FROM runs WHERE cell_id=?1 AND state='ok' AND"
                           " purpose='envelope' ORDER BY run_id",
                           {Value(cell_id)})
                       .integers("run_id");
  std::vector<BitSeries> series;
  for (const auto& [id, run] : load_runs(reader, ids)) series.push_back(load_bits(reader, run));
  return series;
}

/// Series of runs that differ from the base in the order of sums alone.
std::vector<BitSeries> perturbed_runs(const store::Reader& reader, const std::string& cell_id) {
  const json base = config_of(reader, cell_id);
  std::vector<BitSeries> series = envelope_series(reader, cell_id);
  for (const OtherCell& other : cells_like(reader, cell_id)) {
    if (other.config.value("seed", json()) != base.value("seed", json())) continue;
    const auto differences = config_differences(base, other.config);
    const bool honest =
        !differences.empty() && std::all_of(differences.begin(), differences.end(), [](auto& d) {
          return kHonest.contains(d.key) || d.key.starts_with("comm.");
        });
    if (!honest) continue;
    if (const auto run = first_run(reader, other.cell_id)) {
      series.push_back(load_bits(reader, *run));
    }
  }
  return series;
}

double epsilon_of(const json& config) {
  const std::string precision = config.value("precision", json::object()).value("name", "fp32");
  return precision == "fp64" ? std::numeric_limits<double>::epsilon()
                             : static_cast<double>(std::numeric_limits<float>::epsilon());
}

Verdict missing(Tier tier) {
  Verdict v{.metric = tier == Tier::t2 ? "final_val_loss" : "loss",
            .call = Call::not_shown,
            .reason = "not_measured",
            .scale = Verdict::Scale::difference,
            .unit = "nat"};
  v.method_id = tier == Tier::t0 ? "bits.v1" : tier == Tier::t1 ? "envelope.v1" : "seed.tost.v1";
  return v;
}

std::vector<SeedPair> final_losses(const std::vector<SeedRuns>& runs) {
  std::vector<SeedPair> seeds;
  for (const SeedRuns& r : runs) {
    const auto a = r.base.figure("final_val_loss"), b = r.candidate.figure("final_val_loss");
    if (a && b) seeds.push_back({.seed = r.seed, .base = *a, .candidate = *b});
  }
  return seeds;
}

Verdict judge_t2(const store::Reader& reader, const Arm& base, const Design& design,
                 const std::vector<SeedRuns>& runs) {
  const std::vector<SeedPair> seeds = final_losses(runs);
  const Margin margin = loss_margin(reader, base, design);
  if (seeds.empty()) return missing(Tier::t2);
  const double nats = margin.nats.value_or(0);
  Verdict v =
      design.winner ? judge_seeds(seeds, nats, design.rule.alpha) : judge_parity(seeds, nats);
  v.labels.push_back("margin: " + margin.method);
  if (const auto r = correlation(seeds)) v.labels.push_back("r " + std::to_string(*r).substr(0, 5));
  if (margin.nats) return v;
  // Without a margin nothing is equal; a winner still is one.
  v.same_margin.reset();
  v.p_same.reset();
  if (v.call == Call::parity || v.call == Call::no_parity) {
    v.call = Call::not_shown;
    v.reason = "no_margin";
  } else if (v.call == Call::not_shown && v.reason == "margin") {
    v.reason = "no_margin";
  }
  if (v.reason == "no_margin") v.more.reset();
  return v;
}

/// Mean difference over seeds of losses aligned on one axis.
std::optional<Verdict> aligned_verdict(const std::string& metric,
                                       const std::vector<std::optional<Aligned>>& points) {
  std::vector<SeedPair> seeds;
  for (const auto& point : points) {
    if (point) seeds.push_back({.base = point->base, .candidate = point->candidate});
  }
  if (seeds.empty()) return std::nullopt;
  Verdict v = judge_parity(seeds, 0);
  v.metric = metric;
  v.call = Call::not_shown;  // a figure beside the verdict, no claim of its own
  v.reason = "shown beside the verdict";
  v.method_id = "aligned.v1";
  v.p_greater.reset();
  v.p_less.reset();
  v.p_same.reset();
  v.same_margin.reset();
  v.more.reset();
  return v;
}

void add_curves(const store::Reader& reader, const std::vector<SeedRuns>& runs,
                const Design& design, std::vector<Verdict>& verdicts) {
  std::vector<Curve> base, candidate;
  std::vector<std::optional<Aligned>> tokens, time;
  for (const SeedRuns& r : runs) {
    base.push_back(load_curve(reader, r.base));
    candidate.push_back(load_curve(reader, r.candidate));
    tokens.push_back(at_equal_tokens(base.back(), candidate.back()));
    const bool timed = r.base.timed && r.candidate.timed;
    if (timed) time.push_back(at_equal_time(base.back(), candidate.back()));
  }
  for (const auto& [metric, points] :
       {std::pair("loss_at_equal_tokens", &tokens), std::pair("loss_at_equal_time", &time)}) {
    if (auto v = aligned_verdict(metric, *points)) verdicts.push_back(std::move(*v));
  }
  if (!design.target_loss) return;
  const auto ratio = tokens_to_target_ratio(base, candidate, *design.target_loss);
  Verdict v{.metric = "tokens_to_target",
            .call = Call::not_shown,
            .reason = !ratio               ? "the baseline never reached the target"
                      : std::isinf(*ratio) ? "the candidate never reached the target"
                                           : "shown beside the verdict",
            .n_used = static_cast<int64_t>(base.size()),
            .method_id = "target.v1"};
  if (ratio && std::isfinite(*ratio)) v.estimate = std::log(*ratio);
  verdicts.push_back(std::move(v));
}

/// Losses by seed of the cells that equal the arm's but for a shorter schedule.
ScheduleLosses shorter_schedules(const store::Reader& reader, const Arm& base) {
  ScheduleLosses losses;
  for (const Arm::Seed& seed : base.seeds) {
    const json config = config_of(reader, seed.cell_id);
    const double steps = config.value("train", json::object()).value("steps", 0.0);
    const auto full = first_run(reader, seed.cell_id);
    if (!full || !full->figure("final_val_loss")) continue;
    for (const OtherCell& other : cells_like(reader, seed.cell_id)) {
      const double others = other.config.value("train", json::object()).value("steps", 0.0);
      const double share = others / steps;
      if (share < kShortestSchedule || share > kLongestSchedule) continue;
      if (other.config.value("seed", json()) != config.value("seed", json())) continue;
      json same = other.config;
      same["train"]["steps"] = config["train"]["steps"];
      same["train"]["warmup"] = config["train"].value("warmup", json());
      json mine = config;
      mine["train"]["warmup"] = same["train"]["warmup"];
      if (!config_differences(mine, same).empty()) continue;
      const auto run = first_run(reader, other.cell_id);
      if (!run || !run->figure("final_val_loss")) continue;
      losses.full_steps = steps;
      losses.short_steps = others;
      losses.full.push_back(*full->figure("final_val_loss"));
      losses.shortened.push_back(*run->figure("final_val_loss"));
      break;
    }
  }
  return losses;
}

}  // namespace

Margin loss_margin(const store::Reader& reader, const Arm& base, const Design& design) {
  const ScheduleLosses losses = shorter_schedules(reader, base);
  const auto rate = exchange_rate(losses);
  Margin margin{.method = "not measured"};
  if (design.margin) {
    margin.nats = design.margin;
    margin.method = "declared";
  } else if (rate) {
    margin.nats = auto_margin(*rate, losses.full_steps);
    margin.method =
        "1 % of the steps, exchange rate of " + std::to_string(losses.full.size()) + " seeds";
  }
  if (margin.nats && rate) margin.steps = *margin.nats / *rate;
  return margin;
}

Verdict judge_again(const store::Reader& reader, Tier tier, const RunRecord& run,
                    const RunRecord& again) {
  if (tier == Tier::t0) return judge_bits(load_bits(reader, run), load_bits(reader, again));
  const json config = config_of(reader, run.cell_id);
  if (tier == Tier::t1) {
    return judge_envelope(load_bits(reader, run), perturbed_runs(reader, run.cell_id),
                          load_bits(reader, again), epsilon_of(config));
  }
  const auto seed = config.value("seed", int64_t{0});
  const Arm arm{.config_json = config.dump(), .seeds = {{.seed = seed, .cell_id = run.cell_id}}};
  return judge_t2(reader, arm, {}, {{.seed = seed, .base = run, .candidate = again}});
}

std::vector<Verdict> loss_verdicts(const store::Reader& reader, const Arm& base,
                                   const Arm& candidate, const Design& design) {
  if (design.tier.tier == Tier::none) return {};
  const std::vector<SeedRuns> runs = paired_runs(reader, base, candidate);
  std::vector<Verdict> verdicts;
  if (runs.empty()) {
    verdicts.push_back(missing(design.tier.tier));
    return verdicts;
  }
  const SeedRuns& first = runs.front();
  if (design.tier.tier == Tier::t0) {
    verdicts.push_back(
        judge_bits(load_bits(reader, first.base), load_bits(reader, first.candidate)));
  } else if (design.tier.tier == Tier::t1) {
    const std::string& cell_id = first.base.cell_id;
    verdicts.push_back(
        judge_envelope(load_bits(reader, first.base), perturbed_runs(reader, cell_id),
                       load_bits(reader, first.candidate), epsilon_of(config_of(reader, cell_id))));
  } else {
    verdicts.push_back(judge_t2(reader, base, design, runs));
  }
  if (design.tier.tier == Tier::t2) add_curves(reader, runs, design, verdicts);
  return verdicts;
}

}  // namespace assay::evidence
