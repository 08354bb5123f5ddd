// A study of many cells on three axes with seeds, losses, memory and traffic: what charts are for.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "core/evidence/settle.h"
#include "tests/core/store/sample_study.h"

namespace assay::report {

struct LargeStudyShape {
  int64_t optimizers = 2, layouts = 3, policies = 2, seeds = 1;
  int64_t steps = 40;
  int64_t eval_every = 10;
};

/// Cells optim x layout x memory (x seed), all run once; the last layout needs more ranks than the
/// heads divide by and is refused with the last policy, one more cell runs out of memory.
class LargeStudy {
 public:
  explicit LargeStudy(const std::filesystem::path& file, const LargeStudyShape& shape = {})
      : shape_(shape), store_(file) {
    store_.add_env(store::sample_env());
    const int64_t study = store_.add_study(make_study());
    const int64_t supervisor = store_.start_supervisor({.study_id = study,
                                                        .env_id = store::id64('e'),
                                                        .argv = {"assay", "run", "large.yaml"},
                                                        .boot_id = "boot",
                                                        .pid = 1,
                                                        .pid_start = 2});
    store_.ensure_runs(study, store::kMachine);
    while (const auto claim = store_.claim({.study_id = study,
                                            .machine_id = store::kMachine,
                                            .supervisor_id = supervisor,
                                            .env_id = store::id64('e')})) {
      finish(*claim);
    }
  }

 private:
  struct Place {
    int64_t optimizer = 0, layout = 0, policy = 0, seed = 0;
  };

  bool refused(const Place& p) const {
    return shape_.layouts > 2 && p.layout + 1 == shape_.layouts && p.policy + 1 == shape_.policies;
  }

  store::Cell make_cell(const Place& p) const {
    const std::string optim = fmt::format("opt{}", p.optimizer);
    const std::string layout = fmt::format("tp{}", p.layout + 1);
    const std::string memory = fmt::format("keep{}", p.policy);
    store::Cell cell{.slug = fmt::format("{}_{}_{}", optim, layout, memory)};
    nlohmann::json config = store::sample_config(optim, p.layout + 1);
    config["memory"] = {{"name", memory}};
    config["seed"] = p.seed + 1;
    config["train"]["steps"] = shape_.steps;
    cell.recipe_id = id_of(cell.slug);
    if (shape_.seeds > 1) cell.slug += fmt::format("_s{}", p.seed + 1);
    cell.cell_id = cell.config_id = id_of(cell.slug);
    cell.config_json = config.dump();
    cell.data_fingerprint = store::id64('d');
    cell.axes = {{"optim", optim, optim}, {"layout", layout, layout}, {"memory", memory, memory}};
    if (shape_.seeds > 1) {
      cell.axes.push_back({"seed", std::to_string(p.seed + 1), p.seed + 1});
    }
    return cell;
  }

  static std::string id_of(const std::string& text) {
    return fmt::format("{:064x}", std::hash<std::string>{}(text));
  }

  store::Study make_study() {
    store::Study study{
        .name = "large", .yaml_sha256 = store::id64('6'), .yaml_text = "assay: 1\nstudy: large\n"};
    study.resolved_json = "{}";
    study.nuisance = {"seed"};
    for (Place p; p.optimizer < shape_.optimizers; ++p.optimizer) {
      for (p.layout = 0; p.layout < shape_.layouts; ++p.layout) {
        for (p.policy = 0; p.policy < shape_.policies; ++p.policy) {
          for (p.seed = 0; p.seed < shape_.seeds; ++p.seed) add_point(study, p);
        }
      }
    }
    return study;
  }

  void add_point(store::Study& study, const Place& p) {
    store::Cell cell = make_cell(p);
    if (refused(p)) {
      study.skips.push_back({.slug = cell.slug,
                             .line = 9,
                             .reason = fmt::format("2 heads do not divide by tp {}", p.layout + 1),
                             .rule = "refused",
                             .rule_id = "R-TPHEADS"});
      return;
    }
    cell.ordinal = static_cast<int64_t>(study.cells.size());
    places_[cell.cell_id] = p;
    study.cells.push_back(std::move(cell));
  }

  double loss(const Place& p, int64_t step) const {
    const auto x = static_cast<double>(step) / static_cast<double>(shape_.steps);
    const double level = 2.2 - 0.05 * static_cast<double>(p.optimizer);
    const double noise = 0.02 * std::sin(static_cast<double>(7 * step + 13 * p.seed));
    return level + 3.3 * std::exp(-5 * x) + noise + 0.01 * static_cast<double>(p.seed);
  }

  std::vector<nlohmann::json> rows_of(int64_t attempt, const Place& p) const {
    const double slower = 1 + 0.15 * static_cast<double>(p.layout) +
                          0.3 * static_cast<double>(p.policy) +
                          0.02 * static_cast<double>(p.optimizer);
    std::vector<nlohmann::json> rows = {store::open_row(attempt)};
    for (int64_t step = 1; step <= shape_.steps; ++step) {
      nlohmann::json row = store::step_row(step, slower);
      row["loss"] = loss(p, step);
      row["end_us"] = 1'700'000'000'000'000 + static_cast<int64_t>(step * 1e5 * slower);
      rows.push_back(row);
      if (step % shape_.eval_every != 0) continue;
      row.update({{"kind", "eval"}, {"loss", loss(p, step) + 0.03}, {"grad_norm", nullptr}});
      rows.push_back(row);
    }
    const int64_t mib = int64_t{1} << 20;
    const std::pair<const char*, int64_t> parts[] = {
        {"parameters", 13 * mib / (p.layout + 1)},
        {"gradients", 13 * mib / (p.layout + 1)},
        {"optimizer", (26 - 6 * (p.optimizer % 3)) * mib / (p.layout + 1)},
        {"activations", 160 * mib / (p.policy + 1) / (p.layout + 1)},
        {"other", 9 * mib}};
    int64_t sum = 0;
    for (const auto& [category, bytes] : parts) sum += bytes;
    rows.push_back({{"t", "memory"}, {"phase", "step"}, {"peak_allocated_bytes", sum}});
    for (const auto& [category, bytes] : parts) {
      rows.push_back({{"t", "memory_categories"},
                      {"phase", "step"},
                      {"category", category},
                      {"bytes", bytes}});
    }
    if (p.layout > 0) {
      for (const char* group : {"dp_shard", "tp"}) {
        const int64_t bytes = shape_.steps * p.layout * (*group == 't' ? 3 : 5) * mib;
        rows.push_back({{"t", "collectives"},
                        {"grp", group},
                        {"op", "all_reduce"},
                        {"dtype", "float32"},
                        {"phase", "backward"},
                        {"steps", shape_.steps},
                        {"count", shape_.steps},
                        {"payload_bytes", bytes},
                        {"wire_bytes", bytes}});
      }
    }
    rows.push_back({{"t", "close"}, {"rows", rows.size()}, {"outcome", "ok"}});
    return rows;
  }

  void finish(const store::Claim& claim) {
    const Place& p = places_.at(claim.run.cell_id);
    if (p.optimizer == 0 && p.layout == 1 && p.policy == 0) {
      const nlohmann::json rows[] = {store::open_row(claim.attempt_id),
                                     {{"t", "memory"},
                                      {"phase", "step"},
                                      {"peak_allocated_bytes", int64_t{235} << 20},
                                      {"limit_bytes", int64_t{240} << 20}}};
      store_.import_rows(claim.attempt_id, 0, "spool", rows, 1000);
      store_.finish_attempt(
          claim.attempt_id,
          {.state = "oom", .reason = "out of memory in backward, step 1, rank 0"});
      return;
    }
    store_.import_rows(claim.attempt_id, 0, "spool", rows_of(claim.attempt_id, p), 1000);
    evidence::settle(store_, claim.attempt_id);
    store_.finish_attempt(claim.attempt_id, {.state = "ok"});
  }

  const LargeStudyShape shape_;
  store::Store store_;
  std::map<std::string, Place> places_;
};

}  // namespace assay::report
