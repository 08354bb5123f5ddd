// JSON, schema_version 1: everything in the model, raw samples included.
#include "core/report/formats.h"

namespace assay::report {
namespace {

using Json = nlohmann::json;

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

const char* state_name(FigureState state) {
  switch (state) {
    case FigureState::measured:
      return "measured";
    case FigureState::not_measured:
      return "not_measured";
    case FigureState::failed:
      return "failed";
  }
  return "";
}

Json figure_json(const Figure& figure) {
  Json out = {{"value", number(figure.value)},
              {"display", figure.display},
              {"state", state_name(figure.state)},
              {"runs", figure.runs}};
  if (!figure.nonfinite.empty()) out["nonfinite"] = figure.nonfinite;
  if (figure.low) out["range"] = {*figure.low, *figure.high};
  return out;
}

Json row_json(const Model& model, const Row& row) {
  Json out = {{"recipe", row.label},      {"cells", row.cells},
              {"baseline", row.baseline}, {"machine_id", row.machine_id},
              {"state", row.state},       {"runs", row.runs},
              {"keys", Json::object()},   {"figures", Json::object()}};
  if (row.footnote > 0) out["reason"] = model.reasons[static_cast<size_t>(row.footnote - 1)];
  for (size_t i = 0; i < model.keys.size(); ++i) out["keys"][model.keys[i]] = row.keys[i];
  for (size_t i = 0; i < model.columns.size(); ++i) {
    out["figures"][model.columns[i].name] = figure_json(row.figures[i]);
  }
  return out;
}

/// Arrays by column: small, and easy to load as a table. flags 16 marks a loss that is no number.
Json steps_json(const std::vector<StepSample>& steps) {
  Json out = {{"step", Json::array()},     {"kind", Json::array()},  {"wall_s", Json::array()},
              {"loss", Json::array()},     {"flags", Json::array()}, {"used", Json::array()},
              {"grad_norm", Json::array()}};
  for (const StepSample& step : steps) {
    out["step"].push_back(step.step);
    out["kind"].push_back(step.kind);
    out["wall_s"].push_back(step.wall_s);
    out["loss"].push_back(number(step.loss));
    out["grad_norm"].push_back(number(step.grad_norm));
    out["flags"].push_back(step.flags);
    out["used"].push_back(step.used);
  }
  return out;
}

Json optional_int(const std::optional<int64_t>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json run_json(const RunRow& run) {
  Json out = {{"run_id", run.run_id},
              {"cell", run.slug},
              {"cell_id", run.cell_id},
              {"recipe_id", run.recipe_id},
              {"machine_id", run.machine_id},
              {"env_id", run.env_id},
              {"purpose", run.purpose},
              {"slot", run.slot},
              {"state", run.state},
              {"reason", run.reason},
              {"exit_code", optional_int(run.exit_code)},
              {"signal", optional_int(run.signal)},
              {"attempts", run.attempts},
              {"timed", run.timed},
              {"started", run.started},
              {"steady", run.steady},
              {"excluded_steps", run.excluded_steps},
              {"train_steps", run.train_steps},
              {"evaluations", run.evaluations},
              {"metrics", Json::object()}};
  for (size_t i = 0; i < run.figures.size(); ++i) {
    Json figure = figure_json(run.figures[i].second);
    figure.erase("runs");
    figure["formula_id"] = run.formulas[i].second;
    out["metrics"][run.figures[i].first] = std::move(figure);
  }
  if (!run.steps.empty()) out["steps"] = steps_json(run.steps);
  return out;
}

Json columns_json(const Model& model) {
  Json out = Json::array();
  for (const Column& column : model.columns) {
    out.push_back({{"name", column.name},
                   {"title", column.title},
                   {"unit", column.unit},
                   {"scale", column.scale},
                   {"statistic", statistic_name(column.statistic)}});
  }
  return out;
}

Json verdict_json(const VerdictRow& row) {
  return {{"candidate", row.candidate},
          {"baseline", row.baseline},
          {"metric", row.metric},
          {"verdict", row.verdict},
          {"reason", row.reason},
          {"method", row.method},
          {"tier", row.tier},
          {"control", row.control},
          {"change", figure_json(row.change)},
          {"unit", row.unit},
          {"level", number(row.level)},
          {"mde", row.mde},
          {"used", row.used},
          {"discarded", row.discarded},
          {"labels", row.labels}};
}

Json hole_json(const Hole& hole) {
  return {
      {"slug", hole.slug}, {"rule", hole.rule}, {"reason", hole.reason}, {"labels", hole.labels}};
}

}  // namespace

nlohmann::json json(const Model& model) {
  nlohmann::json out = {{"schema_version", 1},
                        {"study", model.study},
                        {"created", model.created},
                        {"database", model.database},
                        {"assay", model.assay},
                        {"machine", model.machine},
                        {"baseline", model.baseline},
                        {"columns", columns_json(model)},
                        {"rows", nlohmann::json::array()},
                        {"runs", nlohmann::json::array()},
                        {"footnotes", model.footnotes},
                        {"environment", nlohmann::json::array()},
                        {"sentence", model.sentence},
                        {"verdict", nullptr},
                        {"verdicts", nlohmann::json::array()},
                        {"axes", model.axes},
                        {"holes", nlohmann::json::array()},
                        {"verdict_note", model.verdict},
                        {"verdict_command", model.verdict_command}};
  for (const Row& row : model.rows) out["rows"].push_back(row_json(model, row));
  for (const RunRow& run : model.runs) out["runs"].push_back(run_json(run));
  for (const VerdictRow& row : model.verdicts) out["verdicts"].push_back(verdict_json(row));
  for (const Hole& hole : model.holes) out["holes"].push_back(hole_json(hole));
  for (const auto& [key, value] : model.environment) out["environment"].push_back({key, value});
  return out;
}

}  // namespace assay::report
