// One request for all cells: starting LibTorch costs more than a dry run.
#include "core/cli/dry_run_cells.h"

#include <limits>
#include <set>

#include "assay/error.h"
#include "core/plugin/worker_question.h"

namespace assay::cli {
namespace {

using nlohmann::json;

constexpr double kLimit_s = 1800;

}  // namespace

grid::Plan plan_for_any_machine(const std::filesystem::path& file,
                                const std::vector<std::string>& sets, const Context& context) {
  grid::PlanRequest request = plan_request(context, file);
  request.machine.devices = std::numeric_limits<int>::max();
  request.sets = sets;
  request.sets.push_back("comm=fake");
  request.sets.push_back("run.devices=1000000");
  return grid::plan(request);
}

std::vector<json> dry_run_cells(const std::vector<const grid::Cell*>& cells, int rank) {
  std::set<std::string> plugins;
  json runs = json::array();
  for (const grid::Cell* cell : cells) {
    if (rank < 0 || rank >= cell->world) {
      throw Error("rank " + std::to_string(rank) + " is no rank of cell " + cell->slug,
                  "0 to " + std::to_string(cell->world - 1));
    }
    plugins.insert(cell->plugin_files.begin(), cell->plugin_files.end());
    runs.push_back({{"config", cell->config()}, {"rank", rank}});
  }
  json answer = ask_worker("dryrun", {{"plugins", plugins}, {"runs", runs}}, kLimit_s);
  std::vector<json> results;
  for (size_t i = 0; i < cells.size(); ++i) {
    results.push_back(std::move(answer.at("runs").at(i)));
    results.back()["cell"] = cells[i]->slug;
  }
  return results;
}

int64_t predicted_bytes(const json& dry_run) {
  int64_t sum = 0;
  for (const auto& [category, bytes] : dry_run.at("bytes").items()) sum += bytes.get<int64_t>();
  return sum;
}

}  // namespace assay::cli
