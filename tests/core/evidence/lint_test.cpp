// Every rule of the linter: a pair that passes, a pair that does not, and what is said then.
#include "core/evidence/lint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace assay::evidence {
namespace {

LintSide side(const std::string& label) {
  LintSide s{.label = label, .seeds = {1, 2, 3}, .data = {"d1"}};
  s.config = {
      {"model.name", "llama3"},   {"model.seq_len", "256"},    {"model.vocab", "data"},
      {"model.flavour", "tiny"},  {"data.name", "text"},       {"data.tokenizer", "bytes"},
      {"data.shuffle", "true"},   {"optim.name", "adamw"},     {"train.global_batch", "8"},
      {"train.steps", "60"},      {"train.warmup", "6"},       {"train.schedule", "cosine"},
      {"train.eval_every", "20"}, {"train.warmup_steps", "5"}, {"train.threads_per_rank", "2"},
      {"mesh.tp", "1"},           {"loss.reduction", "mean"}};
  s.machines = {"CPU, driver none, clock performance, host a"};
  s.builds = {"LibTorch 2.11, g++ 12, Release"};
  s.plugin_builds = {"Release"};
  s.commits = {{"optim/adamw", "c0ffee"}};
  s.formulas = {{"mfu", "palm"}};
  s.counters = {{"recompute.blocks", 8}};
  return s;
}

LintInput fair() {
  return {.base = side("A"), .candidate = side("B"), .axes = {"precision"}, .pairs = 20};
}

struct RuleCase {
  const char* rule;
  std::function<void(LintInput&)> broken;
  const char* what;  ///< part of the message
  const char* base;
  const char* candidate;
};

void PrintTo(const RuleCase& c, std::ostream* out) { *out << c.rule << " " << c.what; }

void set(LintInput& in, const std::string& key, const std::string& value) {
  in.candidate.config[key] = value;
}

const std::vector<RuleCase>& cases() {
  static const std::vector<RuleCase> list = {
      {"L01", [](auto& in) { set(in, "train.global_batch", "16"); },
       "tokens per optimizer step differs", "2048", "4096"},
      {"L02", [](auto& in) { set(in, "model.seq_len", "512"); }, "model.seq_len differs", "256",
       "512"},
      {"L02", [](auto& in) { set(in, "data.document_mask", "true"); }, "data.document_mask differs",
       "none", "true"},
      {"L03", [](auto& in) { set(in, "data.tokenizer", "bpe"); }, "data.tokenizer differs", "bytes",
       "bpe"},
      {"L03", [](auto& in) { in.candidate.data = {"d2"}; }, "data fingerprint differs", "d1", "d2"},
      {"L04", [](auto& in) { set(in, "data.shuffle", "false"); }, "data.shuffle differs", "true",
       "false"},
      {"L05", [](auto& in) { set(in, "train.steps", "66"); }, "total tokens differs",
       "60 steps of 2048 tokens", "66 steps of 2048 tokens"},
      {"L05", [](auto& in) { set(in, "train.schedule", "wsd"); }, "train.schedule differs",
       "cosine", "wsd"},
      {"L06", [](auto& in) { set(in, "model.flavour", "small"); }, "model.flavour differs", "tiny",
       "small"},
      {"L07", [](auto& in) { set(in, "loss.reduction", "sum"); }, "loss.reduction differs", "mean",
       "sum"},
      {"L08",
       [](auto& in) {
         in.candidate.seeds = {1, 2};
       },
       "seed set differs", "1, 2, 3", "1, 2"},
      {"L09", [](auto& in) { set(in, "optim.name", "lion"); }, "learning-rate tuning", "not tuned",
       "not tuned"},
      {"L10", [](auto& in) { set(in, "train.eval_every", "10"); }, "train.eval_every differs", "20",
       "10"},
      {"L11", [](auto& in) { in.candidate.machines = {"other CPU"}; }, "machine differs", "CPU",
       "other CPU"},
      {"L11", [](auto& in) { set(in, "mesh.tp", "2"); }, "world size differs", "1", "2"},
      {"L12", [](auto& in) { in.candidate.builds = {"LibTorch 2.10"}; }, "build differs",
       "LibTorch 2.11", "LibTorch 2.10"},
      {"L12", [](auto& in) { in.base.unfit_builds = in.candidate.unfit_builds = {"Debug"}; },
       "no Debug or sanitizer build in timing", "Debug", "Debug"},
      {"L13", [](auto& in) { set(in, "train.threads_per_rank", "1"); },
       "train.threads_per_rank differs", "2", "1"},
      {"L14", [](auto& in) { in.candidate.profiled_steps = 3; }, "profiled steps differs", "0",
       "3"},
      {"L15", [](auto& in) { set(in, "train.warmup_steps", "9"); }, "train.warmup_steps differs",
       "5", "9"},
      {"L15", [](auto& in) { in.candidate.resumed = true; }, "no untimed or resumed run",
       "timed from step 0", "resumed"},
      {"L16", [](auto& in) { in.pairs = 8; }, "enough pairs", "8", "8"},
      {"L17", [](auto& in) { in.candidate.allocation_retries = 2; }, "allocator retries differs",
       "0", "2"},
      {"L17", [](auto& in) { in.base.oom_attempts = 1; }, "out of memory differs", "1", "0"},
      {"L18", [](auto& in) { in.candidate.formulas["mfu"] = "tt"; }, "mfu formula differs", "palm",
       "tt"},
      {"L19", [](auto& in) { in.candidate.numerics_only = true; }, "no emulated arithmetic", "real",
       "numerics only"},
      {"L19",
       [](auto& in) {
         for (auto* s : {&in.base, &in.candidate}) s->config["data.name"] = "synthetic";
       },
       "mock data in timing", "mock data synthetic", "mock data synthetic"},
      {"L20", [](auto& in) { in.candidate.counters["recompute.blocks"] = 0; },
       "the named technique was at work", "recompute.blocks = 0 in B", "none"},
      {"L21", [](auto& in) { in.candidate.commits["optim/adamw"] = "decade"; },
       "commit of optim/adamw differs", "c0ffee", "decade"},
  };
  return list;
}

class LintRules : public testing::TestWithParam<RuleCase> {};

TEST_P(LintRules, FailsOnItsOwnPair) {
  LintInput input = fair();
  GetParam().broken(input);
  const auto findings = check(input);
  ASSERT_GE(findings.size(), 1u);
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [](const LintFinding& f) { return f.rule == GetParam().rule; });
  ASSERT_NE(found, findings.end());
  EXPECT_THAT(found->what, testing::HasSubstr(GetParam().what));
  EXPECT_THAT(found->base, testing::HasSubstr(GetParam().base));
  EXPECT_THAT(found->candidate, testing::HasSubstr(GetParam().candidate));
  EXPECT_FALSE(found->hint.empty());
}

INSTANTIATE_TEST_SUITE_P(Table, LintRules, testing::ValuesIn(cases()));

TEST(Lint, AFairPairPassesEveryRule) {
  for (const LintFinding& f : check(fair())) ADD_FAILURE() << f.rule << ": " << f.what;
}

TEST(Lint, EveryRuleOfTheTableHasACase) {
  std::set<std::string> tried;
  for (const RuleCase& c : cases()) tried.insert(c.rule);
  EXPECT_EQ(lint_rules().size(), 21u);
  for (const LintRule& rule : lint_rules()) EXPECT_TRUE(tried.contains(rule.id)) << rule.id;
}

TEST(Lint, TheComparedAxisIsExemptFromItsOwnRule) {
  struct Exemption {
    const char* axis;
    const char* key;
    const char* value;
  };
  for (const Exemption& e : {Exemption{"train.steps", "train.steps", "66"},
                             {"mesh.tp", "mesh.tp", "2"},
                             {"model.name", "model.flavour", "small"},
                             {"model", "model.flavour", "small"},
                             {"train.threads_per_rank", "train.threads_per_rank", "1"}}) {
    LintInput input = fair();
    set(input, e.key, e.value);
    EXPECT_FALSE(check(input).empty()) << e.key;
    input.axes = {e.axis};
    EXPECT_TRUE(check(input).empty()) << e.key;
  }
}

TEST(Lint, EqualTuningOfOptimizersPasses) {
  LintInput input = fair();
  set(input, "optim.name", "lion");
  for (LintSide* s : {&input.base, &input.candidate}) {
    s->trials = 5;
    s->trial_steps = 200;
    s->trial_seeds = 1;
  }
  EXPECT_TRUE(check(input).empty());
  input.candidate.trials = 9;
  EXPECT_EQ(check(input).front().rule, "L09");
}

TEST(Lint, WithoutPairsNothingIsSaidOfTiming) {
  LintInput input = fair();
  input.pairs = 0;
  input.candidate.numerics_only = true;
  input.candidate.untimed = true;
  EXPECT_TRUE(check(input).empty());
}

TEST(Lint, AllFindingsComeAtOnceInOrder) {
  LintInput input = fair();
  set(input, "train.steps", "66");
  set(input, "data.tokenizer", "bpe");
  input.candidate.seeds = {1};
  std::vector<std::string> rules;
  for (const LintFinding& f : check(input)) rules.push_back(f.rule);
  EXPECT_THAT(rules, testing::ElementsAre("L03", "L05", "L08"));
}

}  // namespace
}  // namespace assay::evidence
