// run_cell() on one thread per rank, its rows collected.
#include "core/conformance/training.h"

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <exception>
#include <thread>

#include "core/train/run.h"

namespace assay::conformance {
namespace {

using nlohmann::json;

class Collector final : public train::Reporter {
 public:
  explicit Collector(RankRun& run) : run_(run) {}
  void row(const json& spool_row) override { run_.rows.push_back(spool_row); }
  void phase(std::string_view) override {}
  void progress(int64_t, int64_t, double, double, int64_t) override {}

 private:
  RankRun& run_;
};

/// A private folder for the ranks to meet in.
class MeetingFolder {
 public:
  MeetingFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "assay_meet.XXXXXX").string();
    if (!::mkdtemp(name.data())) throw Error(name + ": cannot be created");
    path_ = name;
  }
  ~MeetingFolder() { std::filesystem::remove_all(path_); }
  MeetingFolder(const MeetingFolder&) = delete;
  MeetingFolder& operator=(const MeetingFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

template <class T>
std::vector<T> step_column(const RankRun& run, const char* column) {
  std::vector<T> values;
  for (const json& row : run.rows) {
    if (row.at("t") == "steps" && row.at("kind") != "eval") values.push_back(row.at(column));
  }
  return values;
}

}  // namespace

std::vector<int64_t> RankRun::integers(const char* column) const {
  return step_column<int64_t>(*this, column);
}

std::vector<double> RankRun::reals(const char* column) const {
  return step_column<double>(*this, column);
}

double RankRun::metric(const std::string& name) const {
  for (const json& row : rows) {
    if (row.at("t") == "metrics" && row.at("name") == name) return row.at("value");
  }
  return std::nan("");
}

json RankRun::facts() const {
  for (const json& row : rows) {
    if (row.at("t") == "facts") return row;
  }
  return nullptr;
}

json plain_config() {
  return {{"model", {{"name", "llama3"}, {"flavour", "tiny"}, {"seq_len", 32}}},
          {"data", {{"name", "synthetic"}, {"vocab_size", 64}, {"branches", 2}}},
          {"mesh", json::object()},
          {"parallel", json::object()},
          {"memory", {{"name", "none"}}},
          {"precision", {{"name", "fp32"}}},
          {"compile", {{"name", "eager"}}},
          {"optim", {{"name", "adamw"}, {"lr", 1e-3}}},
          {"comm", {{"name", "thread"}}},
          {"train",
           {{"steps", 4},
            {"global_batch", 4},
            {"micro_batch", 1},
            {"max_norm", 1.0},
            {"eval_batches", 0},
            {"warmup", 0}}},
          {"seed", 1}};
}

json with_subject(const Subject& subject, json config) {
  json component = {{"name", subject.entry->manifest.name}};
  for (const auto& [name, value] : subject.defaults().value_or(OptionValues{})) {
    component[name] = std::visit([](const auto& v) { return json(v); }, value);
  }
  if (subject.entry->kind == Kind::optim) component["lr"] = *subject.entry->manifest.default_lr;
  if (subject.entry->kind == Kind::parallel) {
    config["parallel"][subject.entry->manifest.dims.front()] = component;
  } else {
    config[name_of(subject.entry->kind)] = component;
  }
  return config;
}

bool load_companions(const json& config) {
  std::vector<Kind> kinds{Kind::model,     Kind::data,    Kind::memory,
                          Kind::precision, Kind::compile, Kind::optim};
  if (!config.at("mesh").empty()) kinds.push_back(Kind::comm);
  for (const Kind kind : kinds) {
    if (!load_companion(kind, config.at(name_of(kind)).at("name"))) return false;
  }
  for (const auto& [dim, component] : config.at("parallel").items()) {
    if (!load_companion(Kind::parallel, component.at("name"))) return false;
  }
  return true;
}

std::vector<RankRun> train(const json& config, int world) {
  const MeetingFolder folder;
  const json cell = {{"config", config},
                     {"rendezvous", folder.path().string()},
                     {"collective_timeout_ns", int64_t{60'000'000'000}},
                     {"threads", 1}};
  std::vector<RankRun> runs(static_cast<size_t>(world));
  std::vector<std::exception_ptr> errors(runs.size());
  std::vector<std::thread> ranks;
  for (size_t rank = 0; rank < runs.size(); ++rank) {
    ranks.emplace_back([&, rank] {
      try {
        Collector collector(runs[rank]);
        train::run_cell(cell, static_cast<int>(rank), collector);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return runs;
}

}  // namespace assay::conformance
