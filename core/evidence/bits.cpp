// Comparison of series, step by step.
#include "core/evidence/bits.h"

#include <algorithm>
#include <bit>
#include <boost/math/special_functions/next.hpp>
#include <cmath>
#include <cstdio>

namespace assay::evidence {
namespace {

constexpr double kEnvelopeFactor = 2, kEpsilons = 8;

std::string hex(int64_t bits) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%016llx", static_cast<unsigned long long>(bits));
  return text;
}

std::string ulps(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b)) return "not finite";
  char text[40];
  std::snprintf(text, sizeof text, "%.0f ulp", std::abs(boost::math::float_distance(a, b)));
  return text;
}

std::string difference(const char* what, int64_t step, int64_t a, int64_t b) {
  return std::string(what) + " differs at step " + std::to_string(step) + ": " + hex(a) + " and " +
         hex(b) + " (" + ulps(std::bit_cast<double>(a), std::bit_cast<double>(b)) + ")";
}

/// The first difference of two steps; empty if they agree.
std::string differs(const StepBits& a, const StepBits& b) {
  if (a.step != b.step) {
    return "step " + std::to_string(a.step) + " of the baseline stands against step " +
           std::to_string(b.step);
  }
  if (a.loss_bits != b.loss_bits) {
    return difference("loss", a.step, a.loss_bits.value_or(0), b.loss_bits.value_or(0));
  }
  if (a.grad_norm_bits != b.grad_norm_bits) {
    return difference("gradient norm", a.step, a.grad_norm_bits.value_or(0),
                      b.grad_norm_bits.value_or(0));
  }
  return {};
}

Verdict series_verdict(const char* method) {
  return {.metric = "loss",
          .call = Call::not_shown,
          .scale = Verdict::Scale::difference,
          .unit = "nat",
          .method_id = method};
}

bool has_bits(const BitSeries& series) {
  return !series.steps.empty() &&
         std::all_of(series.steps.begin(), series.steps.end(),
                     [](const StepBits& s) { return s.loss_bits.has_value(); });
}

using Field = std::optional<double> StepBits::*;

/// Checks one quantity at step index k; `spread` is its running maximum.
std::string outside(const BitSeries& base, std::span<const BitSeries> perturbed,
                    const BitSeries& candidate, size_t k, Field field, double epsilon,
                    double& spread) {
  const auto at = [&](const BitSeries& s) { return (s.steps[k].*field); };
  if (!at(base) && !at(candidate)) return {};
  if (!at(base) || !at(candidate)) return "is missing on one side";
  double low = *at(base), high = low;
  for (const BitSeries& s : perturbed) {
    low = std::min(low, at(s).value_or(low));
    high = std::max(high, at(s).value_or(high));
  }
  spread = std::max(spread, high - low);
  const double limit = kEnvelopeFactor * spread + kEpsilons * epsilon * std::abs(*at(base));
  const double distance = std::abs(*at(candidate) - *at(base));
  if (distance <= limit) return {};
  char text[96];
  std::snprintf(text, sizeof text, "is off by %.3g, honest reordering explains %.3g", distance,
                limit);
  return text;
}

}  // namespace

Verdict judge_bits(const BitSeries& base, const BitSeries& candidate) {
  Verdict v = series_verdict("bits.v1");
  if (!has_bits(base) || !has_bits(candidate)) {
    v.reason = "no_bits";
    return v;
  }
  const size_t n = std::min(base.steps.size(), candidate.steps.size());
  for (size_t i = 0; i < n; ++i) {
    v.reason = differs(base.steps[i], candidate.steps[i]);
    if (v.reason.empty()) continue;
    v.call = Call::no_parity;
    v.n_used = static_cast<int64_t>(i);
    return v;
  }
  v.n_used = static_cast<int64_t>(n);
  if (base.steps.size() != candidate.steps.size()) {
    v.reason = "lengths";
  } else if (base.checksums != candidate.checksums) {
    v.call = Call::no_parity;
    v.reason = "parameters differ at the end, losses do not";
  } else {
    v.call = Call::parity;
    v.estimate = 0;
    if (base.checksums.empty()) v.labels.push_back("no_checksum");
  }
  return v;
}

Verdict judge_envelope(const BitSeries& base, std::span<const BitSeries> perturbed,
                       const BitSeries& candidate, double epsilon) {
  Verdict v = series_verdict("envelope.v1");
  v.n_used = static_cast<int64_t>(perturbed.size());
  const auto steps = static_cast<size_t>(kEnvelopeSteps);
  bool long_enough = base.steps.size() >= steps && candidate.steps.size() >= steps;
  for (const BitSeries& s : perturbed) long_enough = long_enough && s.steps.size() >= steps;
  if (v.n_used < kEnvelopeRuns || !long_enough) {
    v.reason = v.n_used < kEnvelopeRuns ? "too_few" : "too_short";
    if (v.n_used < kEnvelopeRuns) v.more = kEnvelopeRuns - v.n_used;
    return v;
  }
  double loss_spread = 0, norm_spread = 0;
  for (size_t k = 0; k < steps; ++k) {
    const auto check = [&](Field field, const char* what, double& spread) {
      const auto why = outside(base, perturbed, candidate, k, field, epsilon, spread);
      if (why.empty()) return true;
      v.call = Call::no_parity;
      v.reason = std::string(what) + " of step " + std::to_string(base.steps[k].step) + " " + why;
      return false;
    };
    if (!check(&StepBits::loss, "loss", loss_spread)) return v;
    if (!check(&StepBits::grad_norm, "gradient norm", norm_spread)) return v;
  }
  v.call = Call::parity;
  v.estimate = *candidate.steps[steps - 1].loss - *base.steps[steps - 1].loss;
  return v;
}

}  // namespace assay::evidence
