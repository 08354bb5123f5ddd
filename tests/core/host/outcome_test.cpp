// The table of states, row by row.
#include "core/host/outcome.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "core/host/launcher.h"

namespace assay::host {
namespace {

constexpr int exited(int code) { return code << 8; }

RankEnd ended(int wait_status, bool closed = false) {
  return {.wait_status = wait_status, .launched = true, .spool_closed = closed};
}

AttemptFacts one(RankEnd rank) { return {.ranks = {std::move(rank)}}; }

struct Row {
  const char* name;
  AttemptFacts facts;
  const char* state;
  const char* reason;
};

AttemptFacts stopped(Stop stop, const char* text, RankEnd rank) {
  return {.stop = stop, .stop_text = text, .ranks = {std::move(rank)}};
}

RankEnd ours() {
  RankEnd rank = ended(SIGKILL);
  rank.killed_by_us = true;
  return rank;
}

RankEnd saying(int code, const char* words) {
  RankEnd rank = ended(exited(code));
  rank.error = words;
  return rank;
}

AttemptFacts oom_kill() {
  AttemptFacts facts = one(ended(SIGKILL));
  facts.oom_kill = true;
  return facts;
}

const Row kRows[] = {
    {"Ok", one(ended(exited(0), true)), "ok", ""},
    {"NotClosed", one(ended(exited(0))), "fail",
     "the worker left with exit code 0 before the end of its run"},
    {"Fail", one(saying(1, "boom\nsecond line")), "fail", "boom"},
    {"OtherCode", one(ended(exited(3))), "fail", "exit code 3"},
    {"Oom", one(saying(12, "tried 8 GiB")), "oom", "out of memory: tried 8 GiB"},
    {"Invalid", one(saying(13, "the loss is nan at step 7")), "invalid",
     "the loss is nan at step 7"},
    {"Infra", one(saying(14, "rank 1 is gone")), "infra", "rank 1 is gone"},
    {"Crash", one(ended(SIGSEGV)), "fail", "crashed with SIGSEGV"},
    {"KernelKill", oom_kill(), "oom", "out of memory: killed by the kernel"},
    {"OutsideKill", one(ended(SIGKILL)), "killed", "SIGKILL from outside"},
    {"OutsideTerm", one(ended(SIGTERM)), "killed", "SIGTERM from outside"},
    {"Lost", one(ended(kStatusLost)), "infra", "the template process died"},
    {"NotStarted", one({}), "infra", "the worker could not be started"},
    {"Timeout", stopped(Stop::timeout, "too long", ours()), "timeout", "too long"},
    {"StepTimeout", stopped(Stop::step_timeout, "no step", ours()), "timeout", "no step"},
    {"Heartbeat", stopped(Stop::heartbeat, "silent", ours()), "timeout", "silent"},
    {"User", stopped(Stop::user, "stopped by Ctrl-C", ours()), "killed", "stopped by Ctrl-C"},
    {"Disk", stopped(Stop::infra, "disk full", ours()), "infra", "disk full"},
    {"CrashBeforeStop", stopped(Stop::user, "stopped by Ctrl-C", ended(SIGSEGV)), "fail",
     "crashed with SIGSEGV"},
};

class States : public testing::TestWithParam<Row> {};
INSTANTIATE_TEST_SUITE_P(Table, States, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(States, AsTheTableSays) {
  const Outcome outcome = decide(GetParam().facts);
  EXPECT_EQ(outcome.end.state, GetParam().state);
  EXPECT_EQ(outcome.end.reason.value_or(""), GetParam().reason);
}

TEST(Ranks, TheCauseWinsOverItsConsequence) {
  AttemptFacts facts{.ranks = {saying(14, "rank 1 is gone"), ended(SIGSEGV)}};
  Outcome outcome = decide(facts);
  EXPECT_EQ(outcome.end.state, "fail");
  EXPECT_EQ(outcome.rank, 1);
  EXPECT_EQ(outcome.end.reason, "rank 1: crashed with SIGSEGV");
  EXPECT_EQ(outcome.end.signal, SIGSEGV);
  facts.ranks.push_back(saying(12, ""));
  outcome = decide(facts);
  EXPECT_EQ(outcome.end.state, "oom");
  EXPECT_EQ(outcome.rank, 2);
}

TEST(Ranks, AllMustBeOk) {
  EXPECT_EQ(decide({.ranks = {ended(0, true), ended(0, true)}}).end.state, "ok");
  EXPECT_EQ(decide({.ranks = {ended(0, true), ended(0, false)}}).end.state, "fail");
}

TEST(Reasons, SayWhereTheRankWas) {
  RankEnd rank = ended(SIGBUS);
  rank.phase = "step";
  rank.step = 7;
  EXPECT_EQ(decide(one(rank)).end.reason, "crashed with SIGBUS, phase step, step 7");
}

}  // namespace
}  // namespace assay::host
