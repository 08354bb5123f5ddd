// The rules, in the order of their ids. Rules over keys leave out what the study compares on
// purpose.
#include "core/evidence/lint.h"

#include <algorithm>
#include <functional>

namespace assay::evidence {
namespace {

using Keys = std::vector<std::string>;

constexpr int64_t kClaim = 3;
const std::set<std::string> kMockData = {"synthetic"};
const Keys kMesh = {"mesh.dp_replicate", "mesh.dp_shard", "mesh.cp", "mesh.tp", "mesh.pp"};

std::string joined(const std::set<std::string>& values) {
  std::string text;
  for (const std::string& v : values) text += (text.empty() ? "" : ", ") + v;
  return text.empty() ? "none" : text;
}

std::string numbers(const std::set<int64_t>& values) {
  std::string text;
  for (const int64_t v : values) text += (text.empty() ? "" : ", ") + std::to_string(v);
  return text.empty() ? "none" : text;
}

class Lint {
 public:
  explicit Lint(const LintInput& input)
      : in_(input), a_(input.base), b_(input.candidate), timing_(input.pairs > 0) {}

  std::vector<LintFinding> findings() {
    configuration_rules();
    environment_rules();
    timing_rules();
    std::stable_sort(found_.begin(), found_.end(),
                     [](const auto& x, const auto& y) { return x.rule < y.rule; });
    return std::move(found_);
  }

 private:
  void configuration_rules() {
    if (!any_exempt({"train.global_batch", "model.seq_len"})) {
      differ("L01", "tokens per optimizer step", tokens_per_step(a_), tokens_per_step(b_),
             "set train.global_batch equal; accumulation follows",
             differing({"train.global_batch", "model.seq_len"}));
    }
    keys("L02", {"model.seq_len", "model.document_mask", "data.document_mask"},
         "compare recipes at one sequence length and one masking");
    keys("L03", {"data.tokenizer", "model.vocab"}, "use one tokenizer for both");
    if (!exempt("data.path") && !exempt("data.name")) {
      differ("L03", "data fingerprint", joined(a_.data), joined(b_.data), "train on the same data",
             data_keys());
    }
    prefix("L04", "data.", {"data.path", "data.tokenizer", "data.document_mask"},
           "give both the same data options: (seed, index) must name the same sample");
    totals();
    prefix("L06", "model.", {"model.seq_len", "model.vocab", "model.document_mask"},
           "compare equal models, or make the model the compared axis");
    loss_keys();
    differ("L08", "seed set", numbers(a_.seeds), numbers(b_.seeds),
           "pair by seed: " + a_.label + " has " + numbers(a_.seeds) + "; " + b_.label + " has " +
               numbers(b_.seeds),
           {"seed"});
    tuning();
    keys("L10", {"train.eval_every", "train.eval_batches"}, "evaluate both at the same steps");
  }

  void environment_rules() {
    differ("L11", "machine", joined(a_.machines), joined(b_.machines),
           "not the same machine: run pairs instead (assay compare --pairs N)");
    if (!any_exempt({"mesh", "parallel"})) {
      differ("L11", "world size", std::to_string(world(a_)), std::to_string(world(b_)),
             "compare at one world size, or make the mesh the compared axis", differing(kMesh));
    }
    differ("L12", "build", joined(a_.builds), joined(b_.builds), "run both with one build");
    differ("L12", "plugin build type", joined(a_.plugin_builds), joined(b_.plugin_builds),
           "build all plugins alike");
    if (timing_) {
      unfit("L12", "no Debug or sanitizer build in timing", joined(a_.unfit_builds),
            joined(b_.unfit_builds), !a_.unfit_builds.empty() || !b_.unfit_builds.empty(),
            "time Release builds");
    }
    keys("L13", {"train.threads_per_rank", "train.deterministic", "comm.deterministic"},
         "threads change sums as well as speed");
    if ((a_.profiled_steps > 0) != (b_.profiled_steps > 0)) {
      differ("L14", "profiled steps", std::to_string(a_.profiled_steps),
             std::to_string(b_.profiled_steps), "profile both or none");
    }
    differ("L17", "allocator retries", std::to_string(a_.allocation_retries),
           std::to_string(b_.allocation_retries), "give both room: raise run.memory_limit");
    differ("L17", "attempts out of memory", std::to_string(a_.oom_attempts),
           std::to_string(b_.oom_attempts), "give both room: raise run.memory_limit");
    for (const auto& [metric, formula] : a_.formulas) {
      const auto other = b_.formulas.find(metric);
      if (other == b_.formulas.end() || exempt("model.name")) continue;
      differ("L18", metric + " formula", formula, other->second,
             "one formula and one peak per column; the column is dropped");
    }
    provenance();
  }

  void timing_rules() {
    if (!timing_) return;
    keys("L15", {"train.warmup_steps"}, "use one warm-up window");
    const auto word = [](const LintSide& s) {
      return std::string(s.untimed ? "untimed" : s.resumed ? "resumed" : "timed from step 0");
    };
    unfit("L15", "no untimed or resumed run in timing", word(a_), word(b_),
          a_.untimed || b_.untimed || a_.resumed || b_.resumed, "run the pairs again, timed");
    if (in_.pairs < std::max(kClaim, in_.fewest_pairs)) {
      unfit("L16", "enough pairs for a timing claim", std::to_string(in_.pairs),
            std::to_string(in_.pairs), true,
            "not enough runs: at least " + std::to_string(in_.fewest_pairs) + " pairs",
            {"compare.pairs"});
    }
    const auto real = [](const LintSide& s) {
      if (s.numerics_only) return std::string("numerics only");
      if (kMockData.contains(value(s, "data.name"))) return "mock data " + value(s, "data.name");
      return value(s, "model.force_balance") == "true" ? std::string("force_balance")
                                                       : std::string("real");
    };
    unfit("L19", "no emulated arithmetic, forced balance or mock data in timing", real(a_),
          real(b_), real(a_) != "real" || real(b_) != "real",
          "its losses may be compared, its speed says nothing: leave out the pairs", unreal_keys());
    engagement(a_);
    engagement(b_);
  }

  void totals() {
    if (any_exempt({"train.steps"})) return;
    const auto total = [](const LintSide& s) {
      return value(s, "train.steps") + " steps of " + tokens_per_step(s) + " tokens";
    };
    if (!any_exempt({"train.global_batch", "model.seq_len"})) {
      differ("L05", "total tokens", total(a_), total(b_), "train both on as many tokens",
             differing({"train.steps", "train.global_batch", "model.seq_len"}));
    }
    keys("L05",
         {"train.schedule", "train.warmup", "train.decay_ratio", "train.decay_shape",
          "train.min_factor"},
         "end both schedules at the same token");
  }

  void loss_keys() {
    std::set<std::string> names;
    for (const LintSide* side : {&a_, &b_}) {
      for (const auto& [key, unused] : side->config) {
        for (const char* word : {"loss", "label", "aux"}) {
          if (key.find(word) != std::string::npos) names.insert(key);
        }
      }
    }
    keys("L07", Keys(names.begin(), names.end()), "show the same loss for both");
  }

  void tuning() {
    if (value(a_, "optim.name") == value(b_, "optim.name")) return;
    const auto text = [](const LintSide& s) {
      if (s.trials > 0) {
        return std::to_string(s.trials) + " trials of " + std::to_string(s.trial_steps) +
               " steps, " + std::to_string(s.trial_seeds) + " seeds";
      }
      return s.tuned.empty() ? std::string("not tuned") : s.tuned;
    };
    const bool equal = text(a_) == text(b_) && text(a_) != "not tuned";
    unfit("L09", "equal learning-rate tuning of both optimizers", text(a_), text(b_), !equal,
          "add tune: unequal tuning made 1.4x out of 1.1x", {"optim.name"});
  }

  void provenance() {
    for (const auto& [role, commit] : a_.commits) {
      const auto other = b_.commits.find(role);
      if (other == b_.commits.end() || exempt("commit")) continue;
      differ("L21", "commit of " + role, commit, other->second,
             "build the plugins of both from one commit");
    }
  }

  void engagement(const LintSide& side) {
    for (const auto& [name, count] : side.counters) {
      if (count > 0) continue;
      unfit("L20", "the named technique was at work", name + " = 0 in " + side.label, "", true,
            "the technique never ran: its figures are the baseline's");
    }
  }

  static std::string value(const LintSide& side, const std::string& key) {
    const auto found = side.config.find(key);
    return found == side.config.end() ? "" : found->second;
  }

  static int64_t number(const LintSide& side, const std::string& key, int64_t otherwise) {
    const std::string text = value(side, key);
    return text.empty() ? otherwise : std::strtoll(text.c_str(), nullptr, 10);
  }

  static std::string tokens_per_step(const LintSide& side) {
    return std::to_string(number(side, "train.global_batch", 0) * number(side, "model.seq_len", 0));
  }

  static int64_t world(const LintSide& side) {
    int64_t size = 1;
    for (const std::string& key : kMesh) size *= number(side, key, 1);
    return size;
  }

  /// Those of `names` whose values differ.
  Keys differing(const Keys& names) const {
    Keys list;
    for (const std::string& key : names) {
      if (value(a_, key) != value(b_, key)) list.push_back(key);
    }
    return list;
  }

  /// Options of the data that differ, or what names it.
  Keys data_keys() const {
    Keys list;
    for (const auto& [key, unused] : a_.config) {
      if (key.starts_with("data.") && value(a_, key) != value(b_, key)) list.push_back(key);
    }
    list.insert(list.end(), {"data.path", "data.name"});
    return list;
  }

  /// What makes either side's figures those of no real work.
  Keys unreal_keys() const {
    Keys list;
    for (const LintSide* side : {&a_, &b_}) {
      if (side->numerics_only) list.push_back("precision.name");
      if (kMockData.contains(value(*side, "data.name"))) list.push_back("data.name");
      if (value(*side, "model.force_balance") == "true") list.push_back("model.force_balance");
    }
    return list;
  }

  /// The key, or what it is a part of, or a part of it, is what the study compares.
  bool exempt(const std::string& key) const {
    return std::any_of(in_.axes.begin(), in_.axes.end(), [&](const std::string& axis) {
      return axis == key || key.starts_with(axis + ".") || axis.starts_with(key + ".");
    });
  }
  bool any_exempt(const Keys& keys) const {
    return std::any_of(keys.begin(), keys.end(), [this](const auto& k) { return exempt(k); });
  }

  void keys(const char* rule, const Keys& names, const std::string& hint) {
    for (const std::string& key : names) {
      if (!exempt(key)) differ(rule, key, value(a_, key), value(b_, key), hint, {key});
    }
  }

  /// All keys below a prefix but some. A component that is compared brings its options.
  void prefix(const char* rule, const std::string& head, const Keys& but, const std::string& hint) {
    if (exempt(head + "name")) return;
    std::set<std::string> names;
    for (const LintSide* side : {&a_, &b_}) {
      for (const auto& [key, unused] : side->config) {
        if (key.starts_with(head) && std::find(but.begin(), but.end(), key) == but.end()) {
          names.insert(key);
        }
      }
    }
    keys(rule, Keys(names.begin(), names.end()), hint);
  }

  void differ(const char* rule, const std::string& what, const std::string& base,
              const std::string& candidate, const std::string& hint, const Keys& at = {}) {
    if (base == candidate) return;
    add(rule, what + " differs", base, candidate, hint, at);
  }

  void unfit(const char* rule, const std::string& what, const std::string& base,
             const std::string& candidate, bool broken, const std::string& hint,
             const Keys& at = {}) {
    if (broken) add(rule, what + ": broken", base, candidate, hint, at);
  }

  /// One finding per rule: further ones join its text.
  void add(const char* rule, const std::string& what, const std::string& base,
           const std::string& candidate, const std::string& hint, const Keys& at) {
    const auto known = std::find_if(found_.begin(), found_.end(),
                                    [&](const LintFinding& f) { return f.rule == rule; });
    const auto shown = [](const std::string& v) { return v.empty() ? std::string("none") : v; };
    if (known == found_.end()) {
      found_.push_back({.rule = rule,
                        .what = what,
                        .base = shown(base),
                        .candidate = shown(candidate),
                        .hint = hint,
                        .keys = at});
      return;
    }
    known->keys.insert(known->keys.end(), at.begin(), at.end());
    known->what += "; " + what;
    known->base += "; " + shown(base);
    known->candidate += "; " + shown(candidate);
  }

  const LintInput& in_;
  const LintSide &a_, &b_;
  const bool timing_;
  std::vector<LintFinding> found_{};
};

}  // namespace

std::vector<LintFinding> check(const LintInput& input) { return Lint(input).findings(); }

const std::vector<LintRule>& lint_rules() {
  static const std::vector<LintRule> rules = {{"L01", "tokens per optimizer step"},
                                              {"L02", "sequence length and document masking"},
                                              {"L03", "tokenizer and data"},
                                              {"L04", "sample order"},
                                              {"L05", "total tokens and end of the schedule"},
                                              {"L06", "parameters and tying"},
                                              {"L07", "the loss that is shown"},
                                              {"L08", "seed sets"},
                                              {"L09", "learning-rate tuning of optimizers"},
                                              {"L10", "evaluation set, size and interval"},
                                              {"L11", "machine and world size"},
                                              {"L12", "build"},
                                              {"L13", "determinism and threads"},
                                              {"L14", "profiler on one side"},
                                              {"L15", "timed steps"},
                                              {"L16", "enough runs"},
                                              {"L17", "retries"},
                                              {"L18", "formula of MFU"},
                                              {"L19", "figures of real work only"},
                                              {"L20", "engagement of the technique"},
                                              {"L21", "provenance of the plugins"}};
  return rules;
}

std::vector<LintFinding> lint(const store::Reader& reader, const Arm& base, const Arm& candidate,
                              const Design& design, const std::vector<Pair>& pairs) {
  std::vector<LintFinding> findings = check(load_lint(reader, base, candidate, design, pairs));
  for (LintFinding& f : findings) {
    const auto allowed = design.allow.find(f.rule);
    if (allowed == design.allow.end()) continue;
    f.allowed = allowed->second.empty() ? "allowed" : allowed->second;
  }
  return findings;
}

}  // namespace assay::evidence
