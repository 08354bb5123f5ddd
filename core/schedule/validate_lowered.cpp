// Sends against receives, reductions after weight gradients, actions between unshard and reshard.
#include "core/schedule/validate_lowered.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/schedule/flow.h"

namespace assay {
namespace {

using enum ActionKind;

/// A transfer and where it stands in the list of its rank.
struct Placed {
  Action action;
  size_t index;
};
/// By (from, to) rank.
using Channels = std::map<std::pair<size_t, size_t>, std::vector<Placed>>;

class LoweredRules {
 public:
  LoweredRules(const std::vector<ActionList>& lists, ScheduleCheck& check)
      : lists_(lists), check_(check), flow_(check.rank_of_stage, check.microbatches, true) {}

  void check() {
    for (size_t rank = 0; rank < lists_.size(); ++rank) {
      for (size_t i = 0; i < lists_[rank].size(); ++i) collect(rank, i);
      check_shards(rank);
      check_reductions(rank);
    }
    for (const auto& [channel, unused] : sends_) receives_[channel];
    for (const auto& [channel, received] : receives_) compare(channel, sends_[channel], received);
    check_complete();
  }

 private:
  void problem(size_t rank, size_t i, const std::string& text) {
    check_.problems.push_back({rank, i, print(lists_[rank][i]) + " " + text});
  }
  size_t rank_of(int64_t stage) const { return static_cast<size_t>(flow_.rank_of(stage)); }

  /// The stage at the other end; -1 if the action is no transfer.
  static int64_t peer_stage(const Action& action) {
    if (action.kind == send_forward || action.kind == receive_backward) return action.stage + 1;
    if (action.kind == send_backward || action.kind == receive_forward) return action.stage - 1;
    return -1;
  }

  void collect(size_t rank, size_t i) {
    const Action& action = lists_[rank][i];
    if (is_compute(action.kind) || action.kind == unshard || action.kind == reshard ||
        action.kind == reduce_gradients) {
      return;
    }
    const int64_t peer = peer_stage(action);
    if (!flow_.crosses(action.stage, peer)) {
      return problem(rank, i, "has no other rank at its other end, stage " + std::to_string(peer));
    }
    if (action.microbatch >= check_.microbatches) {
      return problem(rank, i,
                     "is beyond the last microbatch, " + std::to_string(check_.microbatches - 1));
    }
    const bool sends = action.kind == send_forward || action.kind == send_backward;
    const std::pair channel =
        sends ? std::pair(rank, rank_of(peer)) : std::pair(rank_of(peer), rank);
    (sends ? sends_ : receives_)[channel].push_back({action, i});
  }

  static Action matching(const Action& send) {
    const bool forwards = send.kind == send_forward;
    return {peer_stage(send), forwards ? receive_forward : receive_backward, send.microbatch};
  }

  /// The first place where a channel's sends and receives part.
  void compare(const std::pair<size_t, size_t>& channel, const std::vector<Placed>& sent,
               const std::vector<Placed>& received) {
    const auto [from, to] = channel;
    const size_t common = std::min(sent.size(), received.size());
    for (size_t k = 0; k < common; ++k) {
      if (matching(sent[k].action) == received[k].action) continue;
      return problem(to, received[k].index,
                     "is the " + ordinal(k) + " receive from rank " + std::to_string(from) +
                         ", whose " + ordinal(k) + " send to it is " + print(sent[k].action));
    }
    if (sent.size() > common) {
      problem(from, sent[common].index,
              "has no " + print(matching(sent[common].action)) + " on rank " + std::to_string(to));
    } else if (received.size() > common) {
      problem(to, received[common].index, "has no send on rank " + std::to_string(from));
    }
  }

  static std::string ordinal(size_t k) { return "no. " + std::to_string(k + 1); }

  /// Whatever crosses ranks has been sent (and, by compare(), received) once.
  void check_complete() {
    std::set<std::tuple<ActionKind, int64_t, int64_t>> sent;
    for (const auto& [channel, placed] : sends_) {
      for (const auto& [action, index] : placed) {
        if (!sent.emplace(action.kind, action.stage, action.microbatch).second) {
          problem(channel.first, index, "is there twice");
        }
      }
    }
    for (size_t rank = 0; rank < lists_.size(); ++rank) {
      for (size_t i = 0; i < lists_[rank].size(); ++i) {
        for (const auto& [send, receive, to] : transfers(flow_, lists_[rank][i])) {
          if (sent.contains({send.kind, send.stage, send.microbatch})) continue;
          problem(rank, i,
                  "is not sent to rank " + std::to_string(to) + ": " + print(send) + " is missing");
        }
      }
    }
  }

  /// If a stage is unsharded anywhere, its F, B and I run while it is.
  void check_shards(size_t rank) {
    const ActionList& list = lists_[rank];
    std::set<int64_t> managed, active;
    for (const Action& action : list) {
      if (action.kind == unshard || action.kind == reshard) managed.insert(action.stage);
    }
    for (size_t i = 0; i < list.size(); ++i) {
      const int64_t stage = list[i].stage;
      const bool reads_weights =
          list[i].kind == forward || list[i].kind == backward || list[i].kind == backward_input;
      if (list[i].kind == unshard && !active.insert(stage).second) {
        problem(rank, i, "comes while the stage is unsharded");
      } else if (list[i].kind == reshard && active.erase(stage) == 0) {
        problem(rank, i, "comes while the stage is sharded");
      } else if (reads_weights && managed.contains(stage) && !active.contains(stage)) {
        problem(rank, i, "runs while its stage is sharded");
      }
    }
    for (const int64_t stage : active) {
      check_.problems.push_back(
          {rank, list.size(), "stage " + std::to_string(stage) + " is never resharded"});
    }
  }

  /// Once per stage, after its last weight gradient.
  void check_reductions(size_t rank) {
    const ActionList& list = lists_[rank];
    std::map<int64_t, size_t> last_gradient, reduction;
    for (size_t i = 0; i < list.size(); ++i) {
      const ActionKind kind = list[i].kind;
      if (kind == backward || kind == backward_weight) last_gradient[list[i].stage] = i;
      if (kind == reduce_gradients && !reduction.emplace(list[i].stage, i).second) {
        problem(rank, i, "is there twice");
      }
    }
    for (const auto& [stage, last] : last_gradient) {
      const auto found = reduction.find(stage);
      if (found == reduction.end()) {
        check_.problems.push_back(
            {rank, list.size(), "stage " + std::to_string(stage) + " has no REDUCE_GRAD"});
      } else if (found->second < last) {
        problem(rank, found->second, "comes before " + print(list[last]));
      }
    }
  }

  const std::vector<ActionList>& lists_;
  ScheduleCheck& check_;
  const Flow flow_;
  Channels sends_{}, receives_{};
};

}  // namespace

void check_lowered(const std::vector<ActionList>& lists, ScheduleCheck& check) {
  LoweredRules(lists, check).check();
}

}  // namespace assay
