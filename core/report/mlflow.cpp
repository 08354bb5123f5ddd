// The folder layout of MLflow's file store: one experiment per study, one run per run.
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <cctype>
#include <cmath>
#include <cstring>
#include <set>

#include "core/base/files.h"
#include "core/report/formats.h"

namespace assay::report {
namespace {

constexpr size_t kExperimentDigits = 18, kRunDigits = 32;
enum Status { running = 1, scheduled = 2, finished = 3, failed = 4, killed = 5 };

/// Decimal digits out of a hash, so that a study has the same number in every export.
std::string experiment_id(const std::string& study) {
  const std::string hash = sha256("assay study " + study);
  std::string digits;
  for (const char c : hash) {
    if (digits.size() == kExperimentDigits) break;
    digits += static_cast<char>('0' + (c <= '9' ? c - '0' : c - 'a' + 4));
  }
  if (digits.front() == '0') digits.front() = '1';
  return digits;
}

std::string run_id(const Model& model, const RunRow& run) {
  return sha256(fmt::format("{} {} {} {} {} {}", model.study, run.cell_id, run.machine_id,
                            run.purpose, run.slot, run.run_id))
      .substr(0, kRunDigits);
}

Status status_of(const std::string& state) {
  if (state == "ok") return finished;
  if (state == "queued") return scheduled;
  if (state == "running") return running;
  return state == "killed" ? killed : failed;
}

std::string experiment_yaml(const Model& model, const std::string& id, const std::string& folder) {
  YAML::Emitter out;
  out << YAML::BeginMap << YAML::Key << "artifact_location" << YAML::Value << folder + "/" + id
      << YAML::Key << "experiment_id" << YAML::Value << YAML::DoubleQuoted << id << YAML::Key
      << "lifecycle_stage" << YAML::Value << "active" << YAML::Key << "name" << YAML::Value
      << model.study << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

std::string run_yaml(const RunRow& run, const std::string& experiment, const std::string& id,
                     const std::string& folder) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  const auto entry = [&](const char* key, const auto& value) {
    out << YAML::Key << key << YAML::Value << value;
  };
  entry("artifact_uri", fmt::format("{}/{}/{}/artifacts", folder, experiment, id));
  if (run.ended_us)
    entry("end_time", *run.ended_us / 1000);
  else
    entry("end_time", YAML::Null);
  entry("entry_point_name", "");
  out << YAML::Key << "experiment_id" << YAML::Value << YAML::DoubleQuoted << experiment;
  entry("lifecycle_stage", "active");
  entry("run_id", id);
  entry("run_name", fmt::format("{} run {}", run.slug, run.slot));
  entry("run_uuid", id);
  entry("source_name", "");
  entry("source_type", 4);
  entry("source_version", "");
  entry("start_time", run.started_us.value_or(0) / 1000);
  entry("status", static_cast<int>(status_of(run.state)));
  out << YAML::Key << "tags" << YAML::Value << YAML::Flow << YAML::BeginSeq << YAML::EndSeq;
  entry("user_id", "assay");
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

/// MLflow refuses to read a run with a name of other characters than these.
std::string allowed_name(std::string name) {
  for (char& c : name) {
    const bool allowed = std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_-. :/", c);
    if (!allowed) c = '_';
  }
  return name;
}

/// Series by metric name; a line is "milliseconds value step".
using Series = std::map<std::string, std::string>;

void add_value(Series& series, const std::string& name, int64_t us, double value, int64_t step) {
  series[name] += fmt::format("{} {} {}\n", us / 1000, value, step);
}

Series series_of(const RunRow& run) {
  Series series;
  for (const StepSample& step : run.steps) {
    const bool validation = step.kind == "eval";
    if (step.loss) {
      add_value(series, validation ? "validation_loss" : "loss", step.end_us, *step.loss,
                step.step);
    }
    if (validation) continue;
    if (step.grad_norm) add_value(series, "grad_norm", step.end_us, *step.grad_norm, step.step);
    add_value(series, "step_s", step.end_us, step.wall_s, step.step);
  }
  const int64_t last = run.steps.empty() ? 0 : run.steps.back().step;
  const int64_t end = run.ended_us.value_or(run.started_us.value_or(0));
  for (const auto& [name, figure] : run.figures) {
    if (figure.value) {
      add_value(series, name, end, *figure.value, last);
    } else if (!figure.nonfinite.empty()) {
      series[name] += fmt::format("{} {} {}\n", end / 1000, figure.nonfinite, last);
    }
  }
  return series;
}

void add_run(const Model& model, const RunRow& run, const std::string& experiment,
             const std::string& folder, std::vector<ReportFile>& files) {
  const std::string id = run_id(model, run);
  const std::string place = experiment + "/" + id;
  files.push_back({place + "/meta.yaml", run_yaml(run, experiment, id, folder)});
  for (const char* needed : {"artifacts", "metrics", "params"}) {  // else the run is not found
    files.push_back({fmt::format("{}/{}/", place, needed), ""});
  }
  std::set<std::string> taken;
  for (const auto& [name, lines] : series_of(run)) {
    std::string allowed = allowed_name(name);
    while (!taken.insert(allowed).second) allowed += '_';  // "F<a>" and "F(a)" are two
    files.push_back({place + "/metrics/" + allowed, lines});
  }
  if (const auto config = model.configs.find(run.cell_id); config != model.configs.end()) {
    for (const auto& [key, value] : config->second) {
      files.push_back({place + "/params/" + allowed_name(key), value});
    }
  }
  const std::pair<const char*, std::string> tags[] = {
      {"mlflow.runName", fmt::format("{} run {}", run.slug, run.slot)},
      {"assay.run_id", std::to_string(run.run_id)},
      {"assay.cell_id", run.cell_id},
      {"assay.machine_id", run.machine_id},
      {"assay.state", run.state},
      {"assay.reason", run.reason}};
  for (const auto& [key, value] : tags) {
    if (!value.empty()) files.push_back({place + "/tags/" + key, value});
  }
}

}  // namespace

std::vector<ReportFile> mlflow(const Model& model, const std::string& folder) {
  const std::string experiment = experiment_id(model.study);
  std::vector<ReportFile> files = {
      {experiment + "/meta.yaml", experiment_yaml(model, experiment, folder)}};
  for (const RunRow& run : model.runs) add_run(model, run, experiment, folder, files);
  return files;
}

}  // namespace assay::report
