// The rules of a compute-only schedule, and the event simulation.
#include "core/schedule/validate.h"

#include <algorithm>
#include <map>

#include "core/schedule/flow.h"
#include "core/schedule/validate_lowered.h"

namespace assay {
namespace {

using Lists = std::vector<ActionList>;
using Problems = std::vector<ScheduleProblem>;

std::string number(int64_t value) { return std::to_string(value); }

/// Calls see(rank, index, action) for every action.
template <class See>
void each_action(const Lists& lists, const See& see) {
  for (size_t rank = 0; rank < lists.size(); ++rank) {
    for (size_t i = 0; i < lists[rank].size(); ++i) see(rank, i, lists[rank][i]);
  }
}

/// Stages are 0 .. S-1, each on one rank, and no rank is empty.
void place_stages(const Lists& lists, ScheduleCheck& check) {
  std::map<int64_t, size_t> ranks;
  each_action(lists, [&](size_t rank, size_t i, const Action& action) {
    const auto [found, is_new] = ranks.emplace(action.stage, rank);
    if (is_new || found->second == rank) return;
    check.problems.push_back({rank, i,
                              "stage " + number(action.stage) + " is on rank " +
                                  number(found->second) + " already; a stage is on one rank"});
  });
  for (size_t rank = 0; rank < lists.size(); ++rank) {
    if (lists[rank].empty()) {
      check.problems.push_back({rank, 0, "rank " + number(rank) + " has no action"});
    }
  }
  for (const auto& [stage, rank] : ranks) {
    if (stage != std::ssize(check.rank_of_stage)) {
      check.problems.push_back({rank, lists[rank].size(),
                                "no rank has stage " + number(std::ssize(check.rank_of_stage)) +
                                    ", but there is a stage " + number(stage)});
      return;
    }
    check.rank_of_stage.push_back(static_cast<int64_t>(rank));
  }
}

/// A pair is an F and a B or I.
void check_pairs(const Lists& lists, ScheduleCheck& check) {
  each_action(lists, [&](size_t rank, size_t i, const Action& action) {
    if (!action.overlaps_next) return;
    const bool last = i + 1 == lists[rank].size();
    const ActionKind next = last ? ActionKind::unshard : lists[rank][i + 1].kind;
    const bool backward = next == ActionKind::backward || next == ActionKind::backward_input;
    if (action.kind == ActionKind::forward && backward) return;
    check.problems.push_back(
        {rank, i, print(action) + " overlaps what follows; a pair is F and B"});
  });
}

/// Where the actions of one kind and stage are, by microbatch.
using Places = std::map<int64_t, size_t>;

struct StageActions {
  Places forward, backward, input, weight;
  Places* of(ActionKind kind) {
    switch (kind) {
      case ActionKind::forward:
        return &forward;
      case ActionKind::backward:
        return &backward;
      case ActionKind::backward_input:
        return &input;
      case ActionKind::backward_weight:
        return &weight;
      default:
        return nullptr;
    }
  }
};

std::vector<StageActions> collect(const Lists& lists, ScheduleCheck& check) {
  std::vector<StageActions> stages(check.rank_of_stage.size());
  each_action(lists, [&](size_t rank, size_t i, const Action& action) {
    Places* places = stages[static_cast<size_t>(action.stage)].of(action.kind);
    if (!places || places->emplace(action.microbatch, i).second) return;
    check.problems.push_back({rank, i, print(action) + " is there twice"});
  });
  return stages;
}

/// The number of forwards that most stages have, of equal votes the largest.
int64_t usual_microbatches(const std::vector<StageActions>& stages) {
  std::map<size_t, int> votes;
  for (const StageActions& stage : stages) ++votes[stage.forward.size()];
  const auto most = std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) {
    return a.second <= b.second;
  });
  return most == votes.end() ? 0 : static_cast<int64_t>(most->first);
}

/// Problems of one stage, at actions of its rank.
class StageRules {
 public:
  StageRules(const ActionList& list, size_t rank, int64_t stage, int64_t microbatches,
             Problems& problems)
      : list_(list), rank_(rank), stage_(stage), m_(microbatches), problems_(problems) {}

  void check(const StageActions& a) {
    for (const Places* places : {&a.forward, &a.backward, &a.input, &a.weight}) beyond(*places);
    Places backwards = a.backward;
    backwards.insert(a.input.begin(), a.input.end());
    missing(a.forward, "F", "");
    missing(backwards, "B", " (or I and W)");
    for (const auto& [i, at] : a.backward) {
      if (a.input.contains(i)) problem(at, "has I as well; B is I and W in one");
      if (a.weight.contains(i)) problem(at, "has W as well; B is I and W in one");
    }
    for (const auto& [i, at] : a.input) {
      if (!a.weight.contains(i)) problem(at, "has no W");
    }
    order(a.forward, a.backward, "F");
    order(a.forward, a.input, "F");
    order(a.input, a.weight, "I");
  }

 private:
  void problem(size_t at, const std::string& text) {
    problems_.push_back({rank_, at, print(list_[at]) + " " + text});
  }
  /// Names the first few microbatches that are not in `places`.
  void missing(const Places& places, const char* letter, const char* or_else) {
    constexpr int64_t kNamed = 8;
    const int64_t lost = m_ - std::distance(places.begin(), places.lower_bound(m_));
    std::string names;
    for (int64_t i = 0, named = 0; named < std::min(lost, kNamed); ++i) {
      if (places.contains(i)) continue;
      names += (named++ == 0 ? "" : ", ") + number(stage_) + letter + number(i);
    }
    if (lost == 0) return;
    if (lost > kNamed) names += " and " + number(lost - kNamed) + " more";
    problems_.push_back({rank_, list_.size(),
                         "stage " + number(stage_) + " misses " + names + or_else + "; there are " +
                             number(m_) + " microbatches"});
  }
  void beyond(const Places& places) {
    for (auto it = places.lower_bound(m_); it != places.end(); ++it) {
      problem(it->second, "is beyond the last microbatch, " + number(m_ - 1));
    }
  }
  void order(const Places& before, const Places& after, const char* letter) {
    for (const auto& [i, at] : after) {
      const auto found = before.find(i);
      if (found != before.end() && found->second < at) continue;
      if (found == before.end() && *letter == 'F') continue;  // named as missing
      problem(at, "comes before its " + std::string(letter));
    }
  }

  const ActionList& list_;
  const size_t rank_;
  const int64_t stage_, m_;
  Problems& problems_;
};

void simulate(const Lists& lists, ScheduleCheck& check) {
  Flow flow(check.rank_of_stage, check.microbatches, check.lowered);
  const auto heads = walk(lists, [&](size_t, std::span<const Action> unit) {
    if (!flow.ready(unit)) return false;
    for (const Action& action : unit) flow.finish(action, 0);
    return true;
  });
  if (at_end(lists, heads)) return;
  size_t stuck = 0;
  while (heads[stuck] >= lists[stuck].size()) ++stuck;
  check.problems.push_back(
      {stuck, heads[stuck], "dead-lock: no rank can go on", describe_heads(lists, flow, heads)});
}

bool is_lowered(const Lists& lists) {
  return std::any_of(lists.begin(), lists.end(), [](const ActionList& list) {
    return std::any_of(list.begin(), list.end(),
                       [](const Action& action) { return !is_compute(action.kind); });
  });
}

}  // namespace

ScheduleCheck validate(const Lists& lists, int64_t microbatches) {
  ScheduleCheck check;
  check.lowered = is_lowered(lists);
  place_stages(lists, check);
  check_pairs(lists, check);
  if (!check.problems.empty()) return check;
  const std::vector<StageActions> stages = collect(lists, check);
  check.microbatches = microbatches > 0 ? microbatches : usual_microbatches(stages);
  if (check.microbatches == 0) check.problems.push_back({0, 0, "most stages have no forward"});
  for (size_t stage = 0; stage < stages.size() && check.microbatches > 0; ++stage) {
    const auto rank = static_cast<size_t>(check.rank_of_stage[stage]);
    StageRules(lists[rank], rank, static_cast<int64_t>(stage), check.microbatches, check.problems)
        .check(stages[stage]);
  }
  if (check.problems.empty() && check.lowered) check_lowered(lists, check);
  if (check.problems.empty()) simulate(lists, check);
  std::stable_sort(check.problems.begin(), check.problems.end(), [](const auto& a, const auto& b) {
    return std::pair(a.rank, a.index) < std::pair(b.rank, b.index);
  });
  return check;
}

}  // namespace assay
