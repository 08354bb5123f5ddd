// Dependencies between actions, and the walk over all ranks.
#include "core/schedule/flow.h"

#include <algorithm>

#include "assay/error.h"

namespace assay {
namespace {

constexpr size_t kSlots = 7;  // F, B or I, W, and the four transfers

size_t slot_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
      return 0;
    case ActionKind::backward:
    case ActionKind::backward_input:
      return 1;
    case ActionKind::backward_weight:
      return 2;
    case ActionKind::send_forward:
      return 3;
    case ActionKind::receive_forward:
      return 4;
    case ActionKind::send_backward:
      return 5;
    case ActionKind::receive_backward:
      return 6;
    default:
      return kSlots;
  }
}

bool same_result(const Action& a, const Action& b) {
  return slot_of(a.kind) == slot_of(b.kind) && a.stage == b.stage && a.microbatch == b.microbatch;
}

std::string describe_need(const std::vector<ActionList>& lists, const Action& need) {
  for (size_t rank = 0; rank < lists.size(); ++rank) {
    for (size_t i = 0; i < lists[rank].size(); ++i) {
      if (!same_result(lists[rank][i], need)) continue;
      return print(lists[rank][i]) + ", action " + std::to_string(i + 1) + " of rank " +
             std::to_string(rank);
    }
  }
  return print(need) + ", which no rank runs";
}

}  // namespace

Flow::Flow(std::vector<int64_t> rank_of_stage, int64_t microbatches, bool lowered)
    : rank_of_stage_(std::move(rank_of_stage)),
      microbatches_(microbatches),
      lowered_(lowered),
      ended_(kSlots * rank_of_stage_.size() * static_cast<size_t>(microbatches), -1.0) {}

size_t Flow::place(const Action& action) const {
  const auto m = static_cast<size_t>(microbatches_);
  return (slot_of(action.kind) * rank_of_stage_.size() + static_cast<size_t>(action.stage)) * m +
         static_cast<size_t>(action.microbatch);
}

bool Flow::crosses(int64_t stage, int64_t neighbour) const {
  return neighbour >= 0 && neighbour < stages() && rank_of(stage) != rank_of(neighbour);
}

std::vector<Action> Flow::needs(const Action& action) const {
  using enum ActionKind;
  const auto [stage, kind, i, paired] = action;
  switch (kind) {
    case forward:
      if (stage == 0) return {};
      if (lowered_ && crosses(stage, stage - 1)) return {{stage, receive_forward, i}};
      return {{stage - 1, forward, i}};
    case backward:
    case backward_input:
      if (stage == stages() - 1) return {{stage, forward, i}};
      if (lowered_ && crosses(stage, stage + 1)) {
        return {{stage, forward, i}, {stage, receive_backward, i}};
      }
      return {{stage, forward, i}, {stage + 1, backward, i}};
    case backward_weight:
      return {{stage, backward_input, i}};
    case send_forward:
      return {{stage, forward, i}};
    case send_backward:
      return {{stage, backward, i}};
    case receive_forward:
      return {{stage - 1, send_forward, i}};
    case receive_backward:
      return {{stage + 1, send_backward, i}};
    default:
      return {};
  }
}

bool Flow::finished(const Action& action) const { return ended_[place(action)] >= 0; }

std::vector<Action> Flow::missing(const Action& action) const {
  std::vector<Action> open = needs(action);
  std::erase_if(open, [&](const Action& need) { return finished(need); });
  return open;
}

bool Flow::ready(std::span<const Action> unit) const {
  return std::all_of(unit.begin(), unit.end(),
                     [&](const Action& action) { return missing(action).empty(); });
}

double Flow::available(std::span<const Action> unit, double latency) const {
  double time = 0;
  for (const Action& action : unit) {
    for (const Action& need : needs(action)) {
      const bool remote = rank_of(need.stage) != rank_of(action.stage);
      time = std::max(time, ended_[place(need)] + (remote ? latency : 0.0));
    }
  }
  return time;
}

void Flow::finish(const Action& action, double time) {
  if (slot_of(action.kind) < kSlots) ended_[place(action)] = time;
}

std::vector<Transfer> transfers(const Flow& flow, const Action& action) {
  using enum ActionKind;
  const int64_t stage = action.stage, i = action.microbatch;
  if (action.kind == forward && flow.crosses(stage, stage + 1)) {
    return {{{stage, send_forward, i}, {stage + 1, receive_forward, i}, flow.rank_of(stage + 1)}};
  }
  const bool gives_gradient = action.kind == backward || action.kind == backward_input;
  if (gives_gradient && flow.crosses(stage, stage - 1)) {
    return {{{stage, send_backward, i}, {stage - 1, receive_backward, i}, flow.rank_of(stage - 1)}};
  }
  return {};
}

std::vector<size_t> walk(const std::vector<ActionList>& lists,
                         const std::function<bool(size_t, std::span<const Action>)>& run) {
  std::vector<size_t> heads(lists.size(), 0);
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t rank = 0; rank < lists.size(); ++rank) {
      if (heads[rank] >= lists[rank].size()) continue;
      const std::span<const Action> unit = unit_at(lists[rank], heads[rank]);
      if (!run(rank, unit)) continue;
      heads[rank] += unit.size();
      progress = true;
    }
  }
  return heads;
}

bool at_end(const std::vector<ActionList>& lists, const std::vector<size_t>& heads) {
  for (size_t rank = 0; rank < lists.size(); ++rank) {
    if (heads[rank] < lists[rank].size()) return false;
  }
  return true;
}

std::vector<std::string> describe_heads(const std::vector<ActionList>& lists, const Flow& flow,
                                        const std::vector<size_t>& heads) {
  std::vector<std::string> lines;
  for (size_t rank = 0; rank < lists.size(); ++rank) {
    std::string line = "rank " + std::to_string(rank);
    if (heads[rank] >= lists[rank].size()) {
      lines.push_back(line + " is at its end");
      continue;
    }
    const std::span<const Action> unit = unit_at(lists[rank], heads[rank]);
    line += " waits at " + print(unit) + " (action " + std::to_string(heads[rank] + 1) + ") for ";
    std::string needs;
    for (const Action& action : unit) {
      for (const Action& need : flow.missing(action)) {
        needs += (needs.empty() ? "" : " and ") + describe_need(lists, need);
      }
    }
    lines.push_back(line + needs);
  }
  return lines;
}

void throw_dead_lock(const std::vector<ActionList>& lists, const Flow& flow,
                     const std::vector<size_t>& heads) {
  std::string text = "the schedule dead-locks";
  for (const std::string& line : describe_heads(lists, flow, heads)) text += "; " + line;
  throw Error(text, "assay schedule check FILE.csv checks a schedule without running it");
}

}  // namespace assay
