// Ranges of deterministic figures.
#include "core/evidence/exact.h"

#include <algorithm>
#include <cmath>

namespace assay::evidence {
namespace {

constexpr double kMemoryTolerance = 0.005;
constexpr const char* kFacts[] = {"operations", "recompilations"};

}  // namespace

const std::vector<Proxy>& proxies() {
  static const std::vector<Proxy> list = {{"peak_allocated_bytes", kMemoryTolerance},
                                          {"saved_activation_bytes", 0},
                                          {"wire_bytes", 0},
                                          {"payload_bytes", 0},
                                          {"collectives", 0},
                                          {"operations", 0},
                                          {"flops_per_token", 0},
                                          {"recompilations", 0}};
  return list;
}

std::string stored_name(const std::string& metric) {
  if (metric == "flops_per_token") return "fact.flops_per_token.tt";  // one convention of several
  const bool fact = std::find(std::begin(kFacts), std::end(kFacts), metric) != std::end(kFacts);
  return fact ? "fact." + metric : metric;
}

Verdict judge_exact(const Proxy& proxy, std::span<const double> base,
                    std::span<const double> candidate) {
  Verdict v{.metric = proxy.metric,
            .n_used = static_cast<int64_t>(std::min(base.size(), candidate.size())),
            .min_effect = proxy.tolerance,
            .same_margin = proxy.tolerance,
            .method_id = "exact.v1"};
  if (v.n_used == 0) {
    v.reason = "not_measured";
    return v;
  }
  const auto [a_low, a_high] = std::minmax_element(base.begin(), base.end());
  const auto [b_low, b_high] = std::minmax_element(candidate.begin(), candidate.end());
  const double a = *a_high, b = *b_high;
  if (a > 0 && b > 0) v.estimate = std::log(b / a);
  const double limit = proxy.tolerance * std::abs(a);
  if (std::abs(b - a) <= limit) {
    v.call = Call::same;
  } else if (*b_low <= *a_high + limit && *a_low <= *b_high + limit && (*a_low < a || *b_low < b)) {
    v.reason = "varies";
  } else {
    v.call = b > a ? Call::worse : Call::better;
  }
  return v;
}

}  // namespace assay::evidence
