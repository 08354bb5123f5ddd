// Figures of quality: the loss at the end of the run's own schedule.
#include <numbers>

#include "core/evidence/figures.h"

namespace assay::evidence {
namespace {

using store::Metric;
using store::real;

constexpr int64_t kLastEvaluations = 3;

/// Mean of the last evaluations, and how many they are; a non-finite one leaves no mean.
struct FinalLoss {
  std::optional<double> mean{};
  int64_t evaluations = 0;
};

FinalLoss final_loss(const store::Store& store, int64_t attempt_id) {
  const store::Table rows = store.query(
      "SELECT loss FROM steps WHERE attempt_id=?1 AND kind='eval' AND"
      " rank=(SELECT min(rank) FROM steps WHERE attempt_id=?1) ORDER BY step DESC LIMIT ?2",
      {attempt_id, kLastEvaluations});
  const std::vector<double> losses = rows.reals("loss");
  if (losses.empty() || losses.size() != rows.rows.size()) return {};
  double sum = 0;
  for (const double loss : losses) sum += loss;
  const auto count = static_cast<int64_t>(losses.size());
  return {.mean = sum / static_cast<double>(count), .evaluations = count};
}

/// Bytes of text per token in the same evaluations, as the worker counted them.
std::optional<double> bytes_per_token(const store::Store& store, int64_t attempt_id) {
  const store::Table rows = store.query(
      "SELECT value FROM samples WHERE attempt_id=?1 AND name='eval_bytes_per_token' AND"
      " rank=(SELECT min(rank) FROM steps WHERE attempt_id=?1) ORDER BY step DESC LIMIT ?2",
      {attempt_id, kLastEvaluations});
  const std::vector<double> ratios = rows.reals("value");
  if (ratios.empty()) return std::nullopt;
  double sum = 0;
  for (const double ratio : ratios) sum += ratio;
  const double mean = sum / static_cast<double>(ratios.size());
  return mean > 0 ? std::optional(mean) : std::nullopt;
}

}  // namespace

std::vector<Metric> loss_figures(const store::Store& store, const Attempt& attempt) {
  const FinalLoss loss = final_loss(store, attempt.attempt_id);
  if (!loss.mean) return {};
  const auto ratio = bytes_per_token(store, attempt.attempt_id);
  return {{.name = "final_val_loss", .value = loss.mean, .unit = "nat", .formula_id = "loss.v1"},
          {.name = "final_val_loss_evaluations",
           .value = static_cast<double>(loss.evaluations),
           .unit = "1",
           .formula_id = "loss.v1"},
          {.name = "bits_per_byte",
           .value = ratio ? std::optional(*loss.mean / std::numbers::ln2 / *ratio) : std::nullopt,
           .unit = "bit/B",
           .formula_id = "loss.v1"}};
}

}  // namespace assay::evidence
