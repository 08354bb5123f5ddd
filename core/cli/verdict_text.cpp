// Columns of the verdict table, and the sentences below it.
#include "core/cli/verdict_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace assay::cli {
namespace {

using evidence::Call;
using evidence::Comparison;
using evidence::Verdict;

constexpr double kPercent = 100;

bool is_share(const Verdict& v) { return v.scale == Verdict::Scale::log_ratio; }

std::string percent(double share) { return fmt::format("{:.3g} %", kPercent * share); }

/// Digits that show the uncertainty: two of the half-width, at least as many as make 3 of the
/// value.
int decimals(double value, double half_width) {
  const double scale = half_width > 0 ? half_width / 10 : std::abs(value) / 1000;
  if (scale <= 0 || !std::isfinite(scale)) return 2;
  return std::clamp(static_cast<int>(std::ceil(-std::log10(scale))), 0, 9);
}

std::string pairs_word(const Verdict& v) {
  if (v.method_id.starts_with("seed") || v.method_id == "aligned.v1") {
    return fmt::format("{} seed{}", v.n_used, v.n_used == 1 ? "" : "s");
  }
  if (v.method_id == "bits.v1") return fmt::format("{} steps", v.n_used);
  if (v.method_id == "envelope.v1") return fmt::format("{} perturbed runs", v.n_used);
  if (v.method_id == "exact.v1") return fmt::format("{} runs each, exact", v.n_used);
  return fmt::format("{} pair{}", v.n_used, v.n_used == 1 ? "" : "s");
}

std::string metric_text(const Verdict& v) {
  return v.stage == 2 ? v.metric + " (stage 2)" : v.metric;
}

std::string call_text(const Verdict& v) {
  return v.method_id == "aligned.v1" || v.method_id == "target.v1" ? "-" : name_of(v.call);
}

using Line = std::array<std::string, 4>;

std::string table(const std::vector<Line>& lines) {
  std::array<size_t, 4> widths{};
  for (const Line& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string out;
  for (const Line& line : lines) {
    std::string row = fmt::format("  {:<{}}  {:>{}}  {:<{}}  {}", line[0], widths[0], line[1],
                                  widths[1], line[2], widths[2], line[3]);
    row.erase(row.find_last_not_of(' ') + 1);
    out += row + "\n";
  }
  return out;
}

std::string head(const Comparison& c) {
  int64_t planned = 0, discarded = 0, controls = 0;
  for (const evidence::Pair& p : c.pairs) {
    (p.stage == 0 ? controls : planned) += 1;
    discarded += p.stage > 0 && !p.discard_reason.empty() && p.discard_reason != "not run";
  }
  std::string text = fmt::format("{} against {}", c.label, c.baseline);
  if (planned == 0) return text + "   no pairs";
  text += fmt::format("   {} pairs ABBA", planned);
  if (discarded > 0) text += fmt::format(" ({} discarded)", discarded);
  for (const Verdict& v : c.verdicts) {
    if (v.stage != 0) continue;
    text += fmt::format(
        ", {} control: {}", controls,
        v.reason.empty() ? name_of(v.call) : fmt::format("{} ({})", name_of(v.call), v.reason));
  }
  return text + fmt::format("   {} step time", c.design.value("statistic", "p10"));
}

std::string discards(const Comparison& c) {
  std::string out;
  for (const evidence::Pair& p : c.pairs) {
    if (p.discard_reason.empty() || p.discard_reason == "not run") continue;
    out += fmt::format("  {} {} discarded: {}\n", p.stage == 0 ? "control" : "pair", p.index,
                       p.discard_reason);
  }
  return out;
}

/// What is not settled, and what would settle it.
std::string open_questions(const Comparison& c, const std::string& command) {
  std::string out;
  int64_t planned = 0;
  for (const evidence::Pair& p : c.pairs) planned += p.stage == 1;
  for (const Verdict& v : c.verdicts) {
    if (v.stage == 0 || (v.call != Call::unresolved && v.call != Call::not_shown)) continue;
    if (call_text(v) == "-") continue;
    out += fmt::format("  unresolved: {} ({})", v.metric, v.reason);
    const bool pairs = v.method_id == "pair.sr.v1";
    if (v.mde && pairs) {
      out += fmt::format("; effects below {} cannot be seen with {}", percent(std::expm1(*v.mde)),
                         pairs_word(v));
    }
    if (v.more && pairs) {
      const int64_t total = (planned + *v.more + 1) / 2 * 2;
      out += fmt::format("; about {} more pairs would settle it: {} --pairs {}", *v.more, command,
                         total);
    } else if (v.more) {
      out += fmt::format("; about {} more {} would settle it", *v.more,
                         v.method_id == "envelope.v1" ? "perturbed runs" : "seeds");
    } else if (pairs && v.n_used > 1) {
      out += "; more pairs alone would not settle it: the effect is as large as the limit";
    }
    out += "\n";
  }
  return out;
}

std::string comparison_text(const Comparison& c, const std::string& command) {
  std::string out = head(c) + "\n";
  for (const evidence::LintFinding& f : c.lint) {
    out += f.allowed.empty() ? fmt::format("  NOT COMPARABLE {}: {}: {} vs {}\n", f.rule, f.what,
                                           f.base, f.candidate)
                             : fmt::format("  [{} allowed: {}] {}: {} vs {}\n", f.rule, f.allowed,
                                           f.what, f.base, f.candidate);
  }
  std::vector<Line> lines = {{"metric", "change", "verdict", "evidence"}};
  for (const Verdict& v : c.verdicts) {
    if (v.stage == 0) continue;
    lines.push_back({metric_text(v), change_text(v), call_text(v), evidence_text(v)});
  }
  out += table(lines);
  out += fmt::format("  loss tier {}: {}\n", name_of(c.tier.tier),
                     c.tier.evidence.empty() ? "no reason stored"
                                             : fmt::format("{}", fmt::join(c.tier.evidence, "; ")));
  return out + discards(c) + open_questions(c, command);
}

}  // namespace

std::string change_text(const Verdict& v) {
  if (!v.estimate) return "-";
  const bool share = is_share(v);
  const double value = share ? kPercent * *v.change() : *v.estimate;
  const auto interval = share ? v.change_interval() : v.interval;
  const double factor = share ? kPercent : 1;
  const double half = interval ? factor * (interval->high - interval->low) / 2 : 0;
  const int digits = share && half == 0 ? 2 : decimals(value, half);
  std::string text = fmt::format("{:+.{}f} {}", value, digits, share ? "%" : v.unit);
  if (!interval) return text;
  return text + fmt::format(" [{:+.{}f}, {:+.{}f}]", factor * interval->low, digits,
                            factor * interval->high, digits);
}

std::string evidence_text(const Verdict& v) {
  std::string text = pairs_word(v);
  if (v.n_discarded > 0) text += fmt::format(", {} discarded", v.n_discarded);
  if (v.interval) text += fmt::format(", {:.4g} % interval", kPercent * v.interval->level);
  if (v.p_greater && v.p_less) text += fmt::format(", p {:.2g}", std::min(*v.p_greater, *v.p_less));
  if (v.call == Call::same && v.p_same) text += fmt::format(", p(same) {:.2g}", *v.p_same);
  if (v.mde) {
    text += is_share(v) ? ", MDE " + percent(std::expm1(*v.mde))
                        : fmt::format(", MDE {:.2g} {}", *v.mde, v.unit);
  }
  if (v.same_margin && v.method_id != "exact.v1") {
    text += is_share(v) ? ", margin " + percent(*v.same_margin)
                        : fmt::format(", margin {:.3g} {}", *v.same_margin, v.unit);
  }
  for (const std::string& label : v.labels) text += ", " + label;
  if (!v.reason.empty() && (v.call == Call::no_parity || v.call == Call::invalid)) {
    text += ", " + v.reason;
  }
  return text;
}

std::string verdict_text(const std::vector<Comparison>& comparisons, const std::string& command) {
  std::string out;
  for (const Comparison& c : comparisons)
    out += (out.empty() ? "" : "\n") + comparison_text(c, command);
  return out;
}

nlohmann::json verdict_json(const std::vector<Comparison>& comparisons) {
  nlohmann::json list = nlohmann::json::array();
  for (const Comparison& c : comparisons) {
    nlohmann::json verdicts = nlohmann::json::array(), pairs = nlohmann::json::array(),
                   lint = nlohmann::json::array();
    for (const Verdict& v : c.verdicts) verdicts.push_back(to_json(v));
    for (const evidence::Pair& p : c.pairs) {
      const auto number = [](const std::optional<double>& x) {
        return x ? nlohmann::json(*x) : nlohmann::json(nullptr);
      };
      pairs.push_back({{"stage", p.stage},
                       {"index", p.index},
                       {"orientation", p.baseline_first ? "AB" : "BA"},
                       {"run_a", p.run_a},
                       {"run_b", p.run_b},
                       {"value_a_s", number(p.value_a)},
                       {"value_b_s", number(p.value_b)},
                       {"discard_reason", p.discard_reason},
                       {"quality", p.quality}});
    }
    for (const evidence::LintFinding& f : c.lint) {
      lint.push_back({{"rule", f.rule},
                      {"what", f.what},
                      {"baseline", f.base},
                      {"candidate", f.candidate},
                      {"allowed", f.allowed}});
    }
    list.push_back({{"candidate", c.label},
                    {"baseline", c.baseline},
                    {"base_cell", c.base_cell},
                    {"cand_cell", c.cand_cell},
                    {"tier", name_of(c.tier.tier)},
                    {"tier_evidence", c.tier.evidence},
                    {"design", c.design},
                    {"lint", lint},
                    {"pairs", pairs},
                    {"verdicts", verdicts}});
  }
  return list;
}

}  // namespace assay::cli
