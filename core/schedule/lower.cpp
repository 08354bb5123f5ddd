// From a compute-only schedule to what a rank runs, one pass per kind of action.
#include <map>
#include <set>

#include "assay/error.h"
#include "assay/pipeline.h"
#include "core/schedule/flow.h"

namespace assay {
namespace {

/// The next `count` distinct stages of the row, in the order in which they come.
std::vector<int64_t> next_stages(const ActionList& list, size_t from, int64_t count) {
  std::vector<int64_t> stages;
  for (size_t i = from; i < list.size() && std::ssize(stages) < count; ++i) {
    const int64_t stage = list[i].stage;
    if (std::find(stages.begin(), stages.end(), stage) == stages.end()) stages.push_back(stage);
  }
  return stages;
}

ActionList add_unshards(const ActionList& list, int64_t prefetch) {
  ActionList out;
  std::set<int64_t> active;
  for (size_t i = 0; i < list.size();) {
    const std::vector<int64_t> next = next_stages(list, i, prefetch);
    std::erase_if(active, [&](int64_t stage) {
      const bool evict = std::find(next.begin(), next.end(), stage) == next.end();
      if (evict) out.push_back({stage, ActionKind::reshard});
      return evict;
    });
    for (const int64_t stage : next) {
      if (active.insert(stage).second) out.push_back({stage, ActionKind::unshard});
    }
    for (const Action& action : unit_at(list, i)) {
      out.push_back(action);
      ++i;
    }
  }
  for (const int64_t stage : active) out.push_back({stage, ActionKind::reshard});
  return out;
}

bool ends_weights(const Action& action) {
  return action.kind == ActionKind::backward || action.kind == ActionKind::backward_weight;
}

ActionList add_reductions(const ActionList& list) {
  std::map<int64_t, int64_t> left;  // W's and B's of a stage
  for (const Action& action : list) left[action.stage] += ends_weights(action) ? 1 : 0;
  ActionList out;
  for (size_t i = 0; i < list.size();) {
    const std::span<const Action> unit = unit_at(list, i);
    out.insert(out.end(), unit.begin(), unit.end());
    for (const Action& action : unit) {
      if (!ends_weights(action) || --left[action.stage] > 0) continue;
      out.push_back({action.stage, ActionKind::reduce_gradients});
    }
    i += unit.size();
  }
  return out;
}

int64_t count_microbatches(const std::vector<ActionList>& lists) {
  int64_t count = 0;
  for (const ActionList& list : lists) {
    for (const Action& action : list) count = std::max(count, action.microbatch + 1);
  }
  return count;
}

/// Runs the lists in order; a SEND and its RECV stand next to each other in that order.
std::vector<ActionList> add_transfers(const std::vector<ActionList>& lists,
                                      const std::vector<int64_t>& rank_of_stage) {
  Flow flow(rank_of_stage, count_microbatches(lists), false);
  std::vector<ActionList> out(lists.size());
  const auto heads = walk(lists, [&](size_t rank, std::span<const Action> unit) {
    if (!flow.ready(unit)) return false;
    out[rank].insert(out[rank].end(), unit.begin(), unit.end());
    for (const Action& action : unit) {
      flow.finish(action, 0);
      for (const Transfer& transfer : transfers(flow, action)) {
        out[rank].push_back(transfer.send);
        out[static_cast<size_t>(transfer.to_rank)].push_back(transfer.receive);
      }
    }
    return true;
  });
  ASSAY_CHECK(at_end(lists, heads), "lowering stops half way");
  return out;
}

void check_runs(const std::vector<ActionList>& lists, const std::vector<int64_t>& rank_of_stage) {
  Flow flow(rank_of_stage, count_microbatches(lists), false);
  const auto heads = walk(lists, [&](size_t, std::span<const Action> unit) {
    if (!flow.ready(unit)) return false;
    for (const Action& action : unit) flow.finish(action, 0);
    return true;
  });
  if (!at_end(lists, heads)) throw_dead_lock(lists, flow, heads);
}

void check_stages(const std::vector<ActionList>& lists, const std::vector<int64_t>& rank_of_stage) {
  for (size_t rank = 0; rank < lists.size(); ++rank) {
    for (const Action& action : lists[rank]) {
      ASSAY_CHECK(is_compute(action.kind), print(action) + " is in a compute-only schedule");
      ASSAY_CHECK(
          action.stage < std::ssize(rank_of_stage) &&
              rank_of_stage[static_cast<size_t>(action.stage)] == static_cast<int64_t>(rank),
          print(action) + " is on rank " + std::to_string(rank));
    }
  }
}

}  // namespace

ActionList merge_backward(const ActionList& list) {
  ActionList out;
  for (const Action& action : list) {
    const bool completes = action.kind == ActionKind::backward_weight && !out.empty() &&
                           out.back().kind == ActionKind::backward_input &&
                           out.back().stage == action.stage &&
                           out.back().microbatch == action.microbatch;
    if (completes) {
      out.back().kind = ActionKind::backward;
    } else {
      out.push_back(action);
    }
  }
  return out;
}

std::vector<ActionList> lower(const std::vector<ActionList>& compute_only,
                              const std::vector<int64_t>& rank_of_stage,
                              const LowerOptions& options) {
  check_stages(compute_only, rank_of_stage);
  check_runs(compute_only, rank_of_stage);
  std::vector<ActionList> lists = compute_only;
  for (ActionList& list : lists) {
    if (options.merge_backward) list = merge_backward(list);
    if (options.shard) list = add_unshards(list, options.prefetch);
    list = add_reductions(list);
  }
  return add_transfers(lists, rank_of_stage);
}

}  // namespace assay
