// The simulated self-test: drawn times, real verdict code.
#include <boost/random/mersenne_twister.hpp>
#include <boost/random/normal_distribution.hpp>
#include <boost/random/student_t_distribution.hpp>
#include <cmath>

#include "core/evidence/gate.h"
#include "core/evidence/selftest.h"
#include "core/evidence/timing.h"

namespace assay::evidence {
namespace {

constexpr double kWhite = 0.01, kDrift = 0.025, kCoefficient = 0.9, kFreedom = 2.5;

/// Step times of runs, one after the other.
class Machine {
 public:
  Machine(Noise noise, uint64_t seed) : noise_(noise), random_(seed) {
    drift_ = kDrift * normal_(random_);
  }

  double run(double work) {
    return std::exp(std::log1p(work) + (noise_ == Noise::heavy ? wild() : quiet()));
  }

 private:
  double wild() { return kWhite * heavy_(random_); }
  double quiet() {
    // The innovation that keeps the stationary sd.
    drift_ = kCoefficient * drift_ +
             kDrift * std::sqrt(1 - kCoefficient * kCoefficient) * normal_(random_);
    return drift_ + kWhite * normal_(random_);
  }

  const Noise noise_;
  boost::random::mt19937_64 random_;
  boost::random::normal_distribution<double> normal_{};
  boost::random::student_t_distribution<double> heavy_{kFreedom};
  double drift_ = 0;
};

Pair drawn(Machine& machine, int stage, int64_t index, double work) {
  Pair p{.stage = stage, .index = index, .baseline_first = (index % 2 == 0) != (stage == 2)};
  if (p.baseline_first) p.value_a = machine.run(0);
  p.value_b = machine.run(stage == 0 ? 0 : work);
  if (!p.baseline_first) p.value_a = machine.run(0);
  return p;
}

/// A stage of the design: its pairs, and its own controls spread among them.
void draw(Machine& machine, const Design& design, int stage, double work,
          std::vector<Pair>& pairs) {
  const int64_t controls = design.control_pairs, before = stage == 2 ? controls : 0;
  int64_t made = 0;
  for (int64_t i = 0; i < design.pairs; ++i) {
    const int64_t due = (controls * (i + 1) + design.pairs - 1) / design.pairs;
    for (; made < due; ++made) pairs.push_back(drawn(machine, 0, before + made, 0));
    pairs.push_back(drawn(machine, stage, i, work));
  }
}

Call compared(Machine& machine, const Design& design, double work) {
  std::vector<Pair> pairs;
  draw(machine, design, 1, work, pairs);
  return time_verdicts(pairs, design).back().call;
}

/// Stage 2 runs only if stage 1 fires, as in the gate.
Call gated(Machine& machine, const Design& design, double work) {
  std::vector<Pair> pairs;
  draw(machine, design, 1, work, pairs);
  const Call first = time_verdicts(pairs, design).back().call;
  if (first != Call::slower) return first;
  draw(machine, design, 2, work, pairs);
  return two_stages(first, time_verdicts(pairs, design).back().call);
}

Simulated simulate(const std::string& method, Noise noise, uint64_t seed,
                   const SimulationSize& size, const std::vector<double>& work) {
  const bool gate = method == "gate";
  const Design design = gate ? GateRule{.metrics = {"step_time"}}.design() : selftest_design();
  Simulated result{.method = method, .noise = noise, .pairs = design.pairs};
  Machine machine(noise, seed);
  const auto judge = [&](double w) {
    return gate ? gated(machine, design, w) : compared(machine, design, w);
  };
  for (int64_t i = 0; i < size.equal; ++i) {
    const Call call = judge(0);
    result.equal.add(call, call == Call::slower || (!gate && call == Call::faster));
  }
  for (const double w : work) {
    Injected injected{.work = w};
    for (int64_t i = 0; i < size.injected; ++i) {
      const Call call = judge(w);
      injected.found.add(call, call == Call::slower);
    }
    result.injected.push_back(injected);
  }
  return result;
}

}  // namespace

const char* name_of(Noise noise) { return noise == Noise::drift ? "drift" : "heavy"; }

bool Simulated::within_band() const {
  if (equal.rate() > kSelftestBand) return false;
  if (method != "compare") return true;
  for (const Injected& i : injected) {
    if (i.work == kSelftestPowerAt && i.found.rate() < kSelftestPower) return false;
  }
  return true;
}

std::vector<Simulated> simulate_selftest(Noise noise, uint64_t seed, const SimulationSize& size,
                                         const std::vector<double>& work) {
  return {simulate("compare", noise, seed, size, work), simulate("gate", noise, seed, size, work)};
}

}  // namespace assay::evidence
