// One rank's wait status to a state, then the ranks' states to one.
#include "core/host/outcome.h"

#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstring>

#include "core/base/worker_protocol.h"
#include "core/host/launcher.h"

namespace assay::host {
namespace {

constexpr std::array<const char*, 6> kPrecedence = {"oom",   "fail",   "invalid",
                                                    "infra", "killed", "ok"};

struct RankOutcome {
  std::string state;
  std::string reason;
};

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? "signal " + std::to_string(signal) : "SIG" + std::string(name);
}

/// ", in backward, step 3": where the rank was, as far as it told.
std::string place(const RankEnd& rank) {
  std::string text;
  if (!rank.phase.empty()) text += ", phase " + rank.phase;
  if (rank.step) text += ", step " + std::to_string(*rank.step);
  return text;
}

std::string heading(const std::string& text) { return text.substr(0, text.find('\n')); }

RankOutcome from_code(int code, const RankEnd& rank) {
  const std::string told = rank.error.empty() ? "" : ": " + heading(rank.error);
  switch (code) {
    case kExitOk:
      if (rank.spool_closed) return {"ok", ""};
      return {"fail", "the worker left with exit code 0 before the end of its run" + place(rank)};
    case kExitOutOfMemory:
      return {"oom", "out of memory" + place(rank) + told};
    case kExitInvalid:
      return {"invalid", rank.error.empty() ? "an invariant was broken" : heading(rank.error)};
    case kExitInfrastructure:
      return {"infra", rank.error.empty() ? "the worker met a problem of the machine" + place(rank)
                                          : heading(rank.error)};
    default:
      if (code == kExitFail && !rank.error.empty()) return {"fail", heading(rank.error)};
      return {"fail", "exit code " + std::to_string(code) + place(rank) + told};
  }
}

RankOutcome judge(const RankEnd& rank, bool oom_kill) {
  if (!rank.launched) return {"infra", "the worker could not be started"};
  if (rank.killed_by_us) return {"killed", "ended with its peers"};
  if (rank.wait_status == kStatusLost) return {"infra", "the template process died" + place(rank)};
  if (WIFEXITED(rank.wait_status)) return from_code(WEXITSTATUS(rank.wait_status), rank);
  const int signal = WTERMSIG(rank.wait_status);
  if (signal == SIGKILL && oom_kill) {
    return {"oom", "out of memory: killed by the kernel" + place(rank)};
  }
  if (signal == SIGKILL || signal == SIGTERM || signal == SIGINT) {
    return {"killed", signal_name(signal) + " from outside" + place(rank)};
  }
  return {"fail", "crashed with " + signal_name(signal) + place(rank)};
}

const char* state_of_stop(Stop stop) {
  switch (stop) {
    case Stop::user:
      return "killed";
    case Stop::infra:
      return "infra";
    default:
      return "timeout";
  }
}

size_t precedence(const std::string& state) {
  size_t i = 0;
  while (i < kPrecedence.size() && state != kPrecedence[i]) ++i;
  return i;
}

/// A rank that ended by itself before the supervisor stopped the rest says more than the stop.
bool decides_before_stop(const std::string& state) { return state == "oom" || state == "fail"; }

store::AttemptEnd describe(const RankEnd& rank, const RankOutcome& outcome) {
  store::AttemptEnd end{.state = outcome.state};
  if (rank.launched && rank.wait_status != kStatusLost) {
    if (WIFEXITED(rank.wait_status)) end.exit_code = WEXITSTATUS(rank.wait_status);
    if (WIFSIGNALED(rank.wait_status)) end.signal = WTERMSIG(rank.wait_status);
  }
  if (!outcome.reason.empty()) end.reason = outcome.reason;
  if (!rank.error.empty()) end.detail = rank.error;
  if (outcome.state != "ok" && !rank.stderr_tail.empty()) end.stderr_tail = rank.stderr_tail;
  return end;
}

}  // namespace

Outcome decide(const AttemptFacts& facts) {
  Outcome best{.end = {.state = "ok"}};
  for (size_t i = 0; i < facts.ranks.size(); ++i) {
    RankOutcome rank = judge(facts.ranks[i], facts.oom_kill);
    if (i > 0 && precedence(rank.state) >= precedence(best.end.state)) continue;
    if (facts.ranks.size() > 1 && !rank.reason.empty()) {
      rank.reason = "rank " + std::to_string(i) + ": " + rank.reason;
    }
    best = {.end = describe(facts.ranks[i], rank), .rank = static_cast<int>(i)};
  }
  if (facts.stop == Stop::none || decides_before_stop(best.end.state)) return best;
  best.end.state = state_of_stop(facts.stop);
  best.end.reason = facts.stop_text;
  if (!facts.ranks.empty()) {
    const RankEnd& rank = facts.ranks[static_cast<size_t>(best.rank)];
    best.end.reason = facts.stop_text + place(rank);
    if (!rank.stderr_tail.empty()) best.end.stderr_tail = rank.stderr_tail;
  }
  return best;
}

}  // namespace assay::host
