// Self-test: how often the verdict code is wrong about equal builds, and how often it finds work
// that is there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/evidence/design.h"
#include "core/evidence/verdict.h"
#include "core/store/reader.h"

namespace assay::evidence {

inline constexpr const char* kSelftestStudy = "selftest";
inline constexpr double kSelftestBand = 0.005;  ///< most false verdicts of all comparisons
inline constexpr double kSelftestPower = 0.90;  ///< of `compare` at +3 %, 20 pairs
inline constexpr double kSelftestPowerAt = 0.03;
inline constexpr int64_t kSelftestClaim = 600;  ///< clean comparisons that allow the claim

/// Comparisons of one kind and what was called in them.
struct Tally95 {
  int64_t comparisons = 0;
  int64_t called = 0;   ///< FASTER or SLOWER; of the gate: a confirmed SLOWER
  int64_t invalid = 0;  ///< the block failed its own control: no verdict

  void add(Call call, bool counts);
  double rate() const;   ///< of all comparisons; 0 of none
  double upper() const;  ///< Clopper-Pearson 95 % bound, one-sided; 1 of none
  double lower() const;  ///< the same from below; 0 of none
};

/// Noise of a run's log time. Both have a white part of 1 %.
enum class Noise {
  drift,  ///< AR(1) over runs, coefficient .9, sd 2.5 %: a shared machine
  heavy   ///< Student's t of 2.5 degrees of freedom, scale 1 %: a few wild runs
};
const char* name_of(Noise noise);

struct SimulationSize {
  int64_t equal = 2000;    ///< A/A comparisons
  int64_t injected = 500;  ///< comparisons per size of extra work
};

/// Comparisons with a candidate that does more work.
struct Injected {
  double work = 0;                ///< 0.03: the candidate does 3 % more
  Tally95 found{};                ///< called: SLOWER
  std::vector<double> changes{};  ///< of step time, a share per comparison; empty if drawn
};

/// One method under one noise.
struct Simulated {
  std::string method{};  ///< "compare", "gate"
  Noise noise = Noise::drift;
  int64_t pairs = 0;
  Tally95 equal{};
  std::vector<Injected> injected{};

  /// False verdicts within the band; of `compare` also the power at +3 %, where it was drawn.
  bool within_band() const;
};

/// Draws pairs in the order in which the scheduler lays them out (ABBA, controls spread evenly) and
/// judges them by time_verdicts() and two_stages(), as `compare` and `gate` do. The same seed gives
/// the same figures on every machine.
std::vector<Simulated> simulate_selftest(Noise noise, uint64_t seed, const SimulationSize& size,
                                         const std::vector<double>& work);

/// The study `selftest` holds a growing comparison of its base cell with itself, and one with each
/// cell that does more work; every `design.pairs` pairs, with their own controls, are a comparison.
struct StoredSelftest {
  std::string machine_id{};
  Tally95 equal{};
  std::vector<Injected> injected{};  ///< by work, ascending
  std::vector<double> detectable{};  ///< smallest change found with 80 % power, by comparison
  int64_t open_pairs = 0;            ///< measured, of a comparison that is not whole yet
  int64_t last_us = 0;               ///< end of the newest run

  /// Counts the verdicts of comparisons whose candidate does that much more work.
  void add(double work, const std::vector<Verdict>& verdicts);
};

/// Design of the real comparisons: those of `compare`, a block of 20 pairs and 8 controls.
Design selftest_design();

/// Splits pairs and controls into blocks and gives the verdict of each whole one.
std::vector<Verdict> judge_blocks(const std::vector<Pair>& pairs, const Design& design,
                                  int64_t& open_pairs);

/// How much more work the candidate's steps do: both configurations are equal but for
/// `train.global_batch`, which counts microbatches of equal size. Throws Error if they are not.
double extra_work(const std::string& base_config, const std::string& candidate_config);

/// Per machine; empty without a study `selftest`.
std::vector<StoredSelftest> stored_selftests(const store::Reader& reader);

/// "0 of 12 equal comparisons were called different (95 % bound 22.1 %)".
std::string tally_text(const Tally95& equal);

/// "+3 % work: found in 4 of 5, 80.0 % (at least 34.3 %), step time +2.9 %".
std::string injected_text(const Injected& injected);

/// "20 pairs could find 1.9 % in the middle of 46 comparisons (0.6 to 24.1 %)": how noisy the
/// machine was; empty without comparisons.
std::string detectable_text(const StoredSelftest& stored);

/// "self-test on this machine, last run 2026-11-30 UTC: ..."; empty for a machine that is not among
/// them or has no whole comparison.
std::string selftest_note(const std::vector<StoredSelftest>& stored, const std::string& machine_id,
                          const std::string& separator = "; ");

}  // namespace assay::evidence
