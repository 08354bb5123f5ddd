// Recorded steps as trace events.
#include "core/report/chrome_trace.h"

#include <optional>
#include <string>

#include "core/evidence/explain.h"

namespace assay::report {
namespace {

using nlohmann::json;
using store::integer;
using store::real;
using store::Table;
using store::text;
using store::Value;

constexpr double kMicro = 1e6;
constexpr const char* kNotRecorded =
    "single operations and kernels; where within a step forward, backward and each collective ran "
    "(only how long they took in all)";

json complete(const std::string& name, const char* category, int64_t rank, double start_us,
              double length_us) {
  return {{"name", name}, {"cat", category}, {"ph", "X"},       {"pid", rank},
          {"tid", 0},     {"ts", start_us},  {"dur", length_us}};
}

json named(const char* what, int64_t rank, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", rank}, {"tid", 0}, {"args", {{"name", name}}}};
}

/// One row of `steps` with its samples as events.
class StepEvents {
 public:
  StepEvents(const Table& rows, int64_t rank) : rows_(rows), rank_(rank) {
    if (!rows.empty()) origin_us_ = start_us(0);
  }

  json all() const {
    json events = json::array({named("process_name", rank_, "rank " + std::to_string(rank_)),
                               named("thread_name", rank_, "step thread")});
    for (size_t i = 0; i < rows_.rows.size(); ++i) add(i, events);
    return events;
  }

 private:
  double wall_us(size_t i) const { return *real(rows_.at(i, "wall_s")) * kMicro; }
  double start_us(size_t i) const {
    return static_cast<double>(*integer(rows_.at(i, "end_us"))) - wall_us(i);
  }
  std::optional<double> part_us(size_t i, const char* column) const {
    const auto value = real(rows_.at(i, column));
    return value ? std::optional(*value * kMicro) : std::nullopt;
  }

  void add(size_t i, json& events) const {
    const std::string kind = *text(rows_.at(i, "kind"));
    const std::string number = std::to_string(*integer(rows_.at(i, "step")));
    const double start = start_us(i) - origin_us_, length = wall_us(i);
    const bool trained = kind == "warmup" || kind == "steady";
    json event =
        complete((trained ? "step " : kind + " ") + number, kind.c_str(), rank_, start, length);
    if (!trained) return events.push_back(std::move(event));
    json args = json::object(), counted = json::object();
    for (const char* name :
         {"data_wait_s", "forward_s", "backward_s", "optimizer_s", "comm_exposed_s"}) {
      const auto value = real(rows_.at(i, name));
      args[name] = value ? json(*value) : json();
      if (value && std::string(name) != "data_wait_s") counted[name] = *value;
    }
    args["loss"] = real(rows_.at(i, "loss")) ? json(*real(rows_.at(i, "loss"))) : json();
    event["args"] = std::move(args);
    events.push_back(std::move(event));
    if (const auto wait = part_us(i, "data_wait_s")) {
      events.push_back(complete("data wait", "part", rank_, start, *wait));
    }
    if (const auto update = part_us(i, "optimizer_s")) {
      events.push_back(complete("optimizer", "part", rank_, start + length - *update, *update));
    }
    if (counted.empty()) return;
    events.push_back({{"name", "seconds per step"},
                      {"ph", "C"},
                      {"pid", rank_},
                      {"ts", start},
                      {"args", std::move(counted)}});
  }

  const Table& rows_;
  const int64_t rank_;
  double origin_us_ = 0;
};

}  // namespace

std::vector<int64_t> traced_ranks(const store::Reader& reader, int64_t attempt_id) {
  return reader
      .query("SELECT DISTINCT rank FROM steps WHERE attempt_id=?1 ORDER BY rank",
             {Value(attempt_id)})
      .integers("rank");
}

json chrome_trace(const store::Reader& reader, int64_t attempt_id, int64_t rank) {
  const Table rows = reader.query(std::string("SELECT * FROM ") + evidence::kStepsWithParts +
                                      " WHERE attempt_id=?1 AND rank=?2 ORDER BY end_us, step",
                                  {Value(attempt_id), Value(rank)});
  return {{"traceEvents", StepEvents(rows, rank).all()},
          {"displayTimeUnit", "ms"},
          {"otherData", {{"attempt_id", attempt_id}, {"not_recorded", kNotRecorded}}}};
}

}  // namespace assay::report
