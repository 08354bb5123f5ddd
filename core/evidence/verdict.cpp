// Names of verdicts and tiers, and their JSON form.
#include "core/evidence/verdict.h"

#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace assay::evidence {
namespace {

constexpr std::array<std::pair<Call, const char*>, 10> kCalls = {{{Call::faster, "FASTER"},
                                                                  {Call::slower, "SLOWER"},
                                                                  {Call::better, "BETTER"},
                                                                  {Call::worse, "WORSE"},
                                                                  {Call::same, "SAME"},
                                                                  {Call::unresolved, "UNRESOLVED"},
                                                                  {Call::parity, "PARITY"},
                                                                  {Call::no_parity, "NO_PARITY"},
                                                                  {Call::not_shown, "NOT_SHOWN"},
                                                                  {Call::invalid, "INVALID"}}};
constexpr std::array<std::pair<Tier, const char*>, 4> kTiers = {
    {{Tier::none, "none"}, {Tier::t0, "T0"}, {Tier::t1, "T1"}, {Tier::t2, "T2"}}};

template <class Table, class Key>
const char* word_of(const Table& table, Key key) {
  for (const auto& [value, word] : table) {
    if (value == key) return word;
  }
  throw std::logic_error("a value without a name");
}

template <class Key, class Table>
Key value_of(const Table& table, const std::string& name) {
  for (const auto& [value, word] : table) {
    if (name == word) return value;
  }
  throw std::logic_error("no verdict or tier '" + name + "'");
}

nlohmann::json number(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace

const char* name_of(Call call) { return word_of(kCalls, call); }
Call call_of(const std::string& name) { return value_of<Call>(kCalls, name); }
const char* name_of(Tier tier) { return word_of(kTiers, tier); }
Tier tier_of(const std::string& name) { return value_of<Tier>(kTiers, name); }

std::optional<double> Verdict::change() const {
  if (!estimate || scale != Scale::log_ratio) return std::nullopt;
  return std::expm1(*estimate);
}

std::optional<Interval> Verdict::change_interval() const {
  if (!interval || scale != Scale::log_ratio) return std::nullopt;
  return Interval{std::expm1(interval->low), std::expm1(interval->high), interval->level};
}

double Pair::log_ratio() const { return std::log(*value_b / *value_a); }

bool Comparison::comparable() const {
  for (const LintFinding& finding : lint) {
    if (finding.allowed.empty()) return false;
  }
  return true;
}

const Verdict* Comparison::verdict(const std::string& metric) const {
  const Verdict* found = nullptr;
  for (const Verdict& v : verdicts) {
    if (v.metric == metric && v.stage > 0 && (!found || v.stage >= found->stage)) found = &v;
  }
  return found;
}

nlohmann::json to_json(const Verdict& v) {
  nlohmann::json interval = nullptr;
  if (v.interval) {
    interval = {{"low", v.interval->low}, {"high", v.interval->high}, {"level", v.interval->level}};
  }
  return {{"metric", v.metric},
          {"stage", v.stage},
          {"verdict", name_of(v.call)},
          {"reason", v.reason},
          {"scale", v.scale == Verdict::Scale::log_ratio ? "log_ratio" : "difference"},
          {"unit", v.unit},
          {"n_used", v.n_used},
          {"n_discarded", v.n_discarded},
          {"estimate", number(v.estimate)},
          {"change", number(v.change())},
          {"interval", interval},
          {"p_greater", number(v.p_greater)},
          {"p_less", number(v.p_less)},
          {"p_same", number(v.p_same)},
          {"p_adjusted", number(v.p_adjusted)},
          {"min_effect", number(v.min_effect)},
          {"same_margin", number(v.same_margin)},
          {"mde", number(v.mde)},
          {"sd", number(v.sd)},
          {"sd_robust", number(v.sd_robust)},
          {"control", v.control},
          {"method_id", v.method_id},
          {"labels", v.labels},
          {"more", v.more ? nlohmann::json(*v.more) : nlohmann::json(nullptr)}};
}

}  // namespace assay::evidence
