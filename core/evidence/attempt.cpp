// Loading an attempt: its config and its train steps merged over ranks.
#include "core/evidence/attempt.h"

#include "assay/error.h"

namespace assay::evidence {
namespace {

using store::integer;
using store::real;
using store::text;

int64_t number(const nlohmann::json& config, const char* section, const char* key,
               int64_t otherwise) {
  const auto found = config.find(section);
  if (found == config.end() || !found->is_object()) return otherwise;
  const auto value = found->find(key);
  return value != found->end() && value->is_number() ? value->get<int64_t>() : otherwise;
}

std::vector<TrainStep> train_steps(const store::Store& store, int64_t attempt_id) {
  const store::Table rows = store.query(
      "SELECT step, min(kind='steady') steady, max(wall_s) wall_s, max(tokens) tokens,"
      " min(end_us - CAST(wall_s*1e6 AS INTEGER)) start_us, max(end_us) end_us FROM steps"
      " WHERE attempt_id=?1 AND kind IN('warmup','steady') GROUP BY step ORDER BY step",
      {attempt_id});
  std::vector<TrainStep> steps;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    steps.push_back({.step = *integer(rows.at(i, "step")),
                     .steady = *integer(rows.at(i, "steady")) == 1,
                     .wall_s = *real(rows.at(i, "wall_s")),
                     .tokens = *integer(rows.at(i, "tokens")),
                     .start_us = *integer(rows.at(i, "start_us")),
                     .end_us = *integer(rows.at(i, "end_us"))});
  }
  return steps;
}

}  // namespace

int64_t Attempt::world_size() const {
  int64_t size = 1;
  for (const char* dim : {"dp_replicate", "dp_shard", "cp", "tp", "pp"}) {
    size *= number(config, "mesh", dim, 1);
  }
  return size;
}

int64_t Attempt::tokens_per_step() const {
  return number(config, "train", "global_batch", 0) * number(config, "model", "seq_len", 0);
}

int64_t Attempt::planned_steps() const {
  return number(config, "train", "steps", 0) - first_step_offset;
}

int64_t Attempt::warmup_steps() const { return number(config, "train", "warmup_steps", 5); }

Attempt load_attempt(const store::Store& store, int64_t attempt_id) {
  const store::Table row = store.query(
      "SELECT c.config_json, a.timed, a.resumed_step, a.started_us, c.predicted_bytes,"
      " c.predicted_step_s FROM attempts a JOIN runs r USING(run_id) JOIN cells c USING(cell_id)"
      " WHERE a.attempt_id=?1",
      {attempt_id});
  ASSAY_CHECK(!row.empty(), "no attempt " + std::to_string(attempt_id) + " to settle");
  const auto resumed = integer(row.at(0, "resumed_step"));
  return {.attempt_id = attempt_id,
          .config = nlohmann::json::parse(*text(row.at(0, "config_json"))),
          .has_timing = *integer(row.at(0, "timed")) == 1 && !resumed,
          .first_step_offset = resumed.value_or(0),
          .started_us = *integer(row.at(0, "started_us")),
          .predicted_bytes = integer(row.at(0, "predicted_bytes")),
          .predicted_step_s = real(row.at(0, "predicted_step_s")),
          .steps = train_steps(store, attempt_id)};
}

}  // namespace assay::evidence
