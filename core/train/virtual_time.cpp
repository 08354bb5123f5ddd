// Gathers the ranks' times as one sum of disjoint parts, then asks the event simulation.
#include "core/train/virtual_time.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include "core/schedule/simulate.h"

namespace assay::train {
namespace {

std::vector<std::vector<double>> times_of_all_ranks(Assembly& a, const std::vector<double>& mine) {
  const at::NoGradGuard no_grad;
  const PhaseScope control("control");
  const auto& lists = a.pipeline.actions;
  int64_t total = 0;
  std::vector<int64_t> offsets;
  for (const ActionList& list : lists) {
    offsets.push_back(total);
    total += std::ssize(list);
  }
  Tensor all = at::zeros({total}, at::kDouble);
  auto* seconds = all.mutable_data_ptr<double>();
  const int64_t here = offsets.at(static_cast<size_t>(a.mesh.coordinate(MeshDim::pp)));
  std::copy(mine.begin(), mine.end(), seconds + here);
  a.groups(MeshDim::pp).all_reduce(all).wait();
  std::vector<std::vector<double>> times;
  for (size_t r = 0; r < lists.size(); ++r) {
    times.emplace_back(seconds + offsets[r], seconds + offsets[r] + std::ssize(lists[r]));
  }
  return times;
}

// Moves what is no forward or backward to the next one that is, or to the last.
void fold(const ActionList& list, std::vector<double>& times) {
  double pending = 0;
  size_t last = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!is_compute(list[i].kind)) {
      pending += times[i];
      continue;
    }
    times[i] += pending;
    pending = 0;
    last = i;
  }
  if (!times.empty()) times[last] += pending;
}

}  // namespace

double virtual_step_s(Assembly& a, const std::vector<double>& action_cpu_s) {
  const auto& lists = a.pipeline.actions;
  auto times = times_of_all_ranks(a, action_cpu_s);
  for (size_t r = 0; r < lists.size(); ++r) fold(lists[r], times[r]);
  const UnitTime time = [&](size_t rank, size_t index, std::span<const Action> unit) {
    double sum = 0;
    for (size_t i = 0; i < unit.size(); ++i) sum += times[rank][index + i];
    return sum;
  };
  return simulate(lists, a.pipeline.rank_of_stage, a.step.microbatches, time, 0).makespan;
}

}  // namespace assay::train
