// The walk of flow.h with a clock per rank.
#include "core/schedule/simulate.h"

#include <algorithm>

#include "core/schedule/flow.h"

namespace assay {
namespace {

double duration(std::span<const Action> unit, const ChunkTimes& times) {
  if (unit.size() == 2) return times.pair();
  switch (unit.front().kind) {
    case ActionKind::forward:
      return times.forward;
    case ActionKind::backward:
      return times.backward();
    case ActionKind::backward_input:
      return times.input;
    case ActionKind::backward_weight:
      return times.weight;
    default:
      return 0;
  }
}

int64_t count_messages(const ActionList& list, const Flow& flow) {
  int64_t count = 0;
  for (const Action& action : list) count += std::ssize(transfers(flow, action));
  return count;
}

bool is_lowered(const std::vector<ActionList>& lists) {
  return std::any_of(lists.begin(), lists.end(), [](const ActionList& list) {
    return std::any_of(list.begin(), list.end(),
                       [](const Action& action) { return !is_compute(action.kind); });
  });
}

class Clocks {
 public:
  Clocks(const std::vector<ActionList>& lists, Flow& flow, const UnitTime& time, double latency)
      : lists_(lists), flow_(flow), time_(time), latency_(latency), free_(lists.size(), 0) {
    line_.ranks.resize(lists.size());
    line_.busy.resize(lists.size(), 0);
  }

  bool run(size_t rank, std::span<const Action> unit) {
    if (!flow_.ready(unit)) return false;
    const double available = flow_.available(unit, latency_);
    if (is_compute(unit.front().kind)) {
      const auto index = static_cast<size_t>(unit.data() - lists_[rank].data());
      const double time = time_(rank, index, unit);
      const double start = std::max(free_[rank], available);
      free_[rank] = start + time;
      line_.busy[rank] += time;
      line_.ranks[rank].push_back({index, unit.size(), start, free_[rank]});
      for (const Action& action : unit) flow_.finish(action, free_[rank]);
    } else {
      flow_.finish(unit.front(), available);  // on the wire, not on the rank
    }
    return true;
  }

  Timeline take() {
    line_.makespan = *std::max_element(free_.begin(), free_.end());
    line_.bubble = line_.makespan - *std::max_element(line_.busy.begin(), line_.busy.end());
    return std::move(line_);
  }

 private:
  const std::vector<ActionList>& lists_;
  Flow& flow_;
  const UnitTime& time_;
  const double latency_;
  std::vector<double> free_;  // when each rank has finished what it has started
  Timeline line_{};
};

}  // namespace

int64_t peak_chunks(const ActionList& list) {
  int64_t alive = 0, peak = 0;
  for (const Action& action : list) {
    if (action.kind == ActionKind::forward) peak = std::max(peak, ++alive);
    if (action.kind == ActionKind::backward || action.kind == ActionKind::backward_weight) --alive;
  }
  return peak;
}

Timeline simulate(const std::vector<ActionList>& lists, const std::vector<int64_t>& rank_of_stage,
                  int64_t microbatches, const ChunkTimes& times) {
  const UnitTime time = [&](size_t, size_t, std::span<const Action> unit) {
    return duration(unit, times);
  };
  return simulate(lists, rank_of_stage, microbatches, time, times.latency);
}

Timeline simulate(const std::vector<ActionList>& lists, const std::vector<int64_t>& rank_of_stage,
                  int64_t microbatches, const UnitTime& time, double latency) {
  Flow flow(rank_of_stage, microbatches, is_lowered(lists));
  Clocks clocks(lists, flow, time, latency);
  const auto heads = walk(
      lists, [&](size_t rank, std::span<const Action> unit) { return clocks.run(rank, unit); });
  if (!at_end(lists, heads)) throw_dead_lock(lists, flow, heads);
  Timeline line = clocks.take();
  for (const ActionList& list : lists) {
    line.peak_chunks.push_back(peak_chunks(list));
    line.messages.push_back(count_messages(list, flow));
  }
  return line;
}

}  // namespace assay
