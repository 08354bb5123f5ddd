// Checks of `compare:`.
#include "core/grid/compare_block.h"

#include <algorithm>
#include <cmath>

#include "core/base/nearest.h"
#include "core/base/units.h"
#include "core/grid/reading.h"

namespace assay::grid {
namespace {

const std::vector<std::string> kKeys = {"baseline",   "candidates",  "pairs", "statistic",
                                        "min_effect", "same_margin", "loss",  "alpha",
                                        "metrics",    "allow",       "power", "control_pairs"};

constexpr double kStandardMargin = 0.01;  // of min_effect and same_margin
constexpr double kStandardAlpha = 0.0025;

bool is_arm(const Node* node) { return node && node->is_map() && node->find("set"); }

/// Rules of the linter that may be allowed, with the reason.
void check_allow(const Node& compare, Findings& findings) {
  const Node* allow = compare.find("allow");
  if (!allow) return;
  if (!allow->is_map()) {
    findings.error("G15", allow->mark, "'compare.allow' must be a map {L05: reason}");
    return;
  }
  constexpr int kLastRule = 21;
  for (const Member& member : allow->members) {
    const auto number = member.key.size() == 3 && member.key[0] == 'L'
                            ? parse_integer(member.key.substr(1))
                            : std::nullopt;
    if (!number || *number < 1 || *number > kLastRule) {
      findings.error("G14", member.mark, "the linter has no rule '" + member.key + "'",
                     {"its rules are L01 to L21, see docs/comparing.md"});
    } else if (member.value.text.empty()) {
      findings.error("G15", member.value.mark, "'compare.allow." + member.key + "' needs a reason");
    }
  }
}

std::optional<double> share(const Node& compare, const std::string& key, Findings& findings) {
  const Node* node = compare.find(key);
  if (!node) return std::nullopt;
  const OptionSpec spec{
      .name = key, .type = OptionType::real, .default_value = 0.0, .range = {0, 1}};
  const auto value = read_value(*node, spec, "compare." + key, findings);
  return value ? std::optional(std::get<double>(*value)) : std::nullopt;
}

/// 0.02 as "2%".
std::string percent(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g%%", value * 100);
  return text;
}

void check_pairs(const Node& compare, Findings& findings) {
  const Node* node = compare.find("pairs");
  if (!node || node->text == "0") return;  // losses and bytes alone
  const double alpha = share(compare, "alpha", findings).value_or(kStandardAlpha);
  const double least = alpha >= 0.005 ? 8 : 10;  // smallest counts whose exact p reaches alpha
  const OptionSpec spec{.name = "pairs",
                        .type = OptionType::integer,
                        .default_value = int64_t{20},
                        .range = {least, 1000}};
  const auto value = read_value(*node, spec, "compare.pairs", findings);
  if (value && std::get<int64_t>(*value) % 2 != 0) {
    findings.error(
        "G15", node->mark,
        "'compare.pairs' must be even: pairs run in the order A B B A; got '" + node->text + "'");
  }
}

}  // namespace

std::optional<Node> compared_arms(const Node& root) {
  const Node* compare = root.find("compare");
  if (!compare || !is_arm(compare->find("baseline"))) return std::nullopt;
  Node list{.kind = Node::Kind::sequence, .mark = compare->mark};
  list.items.push_back(*compare->find("baseline"));
  if (const Node* candidates = compare->find("candidates")) {
    for (const Node& arm : candidates->items) list.items.push_back(arm);
  }
  return list;
}

const Node* compared_seeds(const Node& root) {
  const Node* compare = root.find("compare");
  const Node* loss = compare && compare->is_map() ? compare->find("loss") : nullptr;
  return loss && loss->is_map() ? loss->find("seeds") : nullptr;
}

void check_compare(const Node& root, Findings& findings) {
  const Node* compare = root.find("compare");
  if (!compare || !compare->is_map()) return;
  for (const Member& member : compare->members) {
    if (std::find(kKeys.begin(), kKeys.end(), member.key) != kKeys.end()) continue;
    const std::string near = did_you_mean(nearest(member.key, kKeys));
    Mark mark = member.mark;
    mark.length = code_points(member.key);
    findings.error("G04", mark, "unknown key '" + member.key + "' in compare",
                   near.empty() ? std::vector<std::string>{} : std::vector{near});
  }
  check_pairs(*compare, findings);
  check_allow(*compare, findings);
  if (const Node* statistic = compare->find("statistic")) {
    const OptionSpec spec{.name = "statistic",
                          .type = OptionType::choice,
                          .default_value = std::string("p10"),
                          .choices = {"p10", "median", "min"}};
    read_value(*statistic, spec, "compare.statistic", findings);
  }
  const auto effect = share(*compare, "min_effect", findings);
  const auto same = share(*compare, "same_margin", findings);
  if (same && *same > effect.value_or(kStandardMargin)) {
    findings.error("G13", compare->find("same_margin")->mark,
                   "same_margin " + percent(*same) + " is larger than min_effect " +
                       percent(effect.value_or(kStandardMargin)) +
                       ": a result could be both SAME and FASTER");
  }
}

}  // namespace assay::grid
