// parallel/cp: every rank holds a part of each sequence; attention brings the parts together.
#pragma once

#include <string>
#include <vector>

#include "assay/options.h"
#include "assay/parallel.h"

namespace assay::parallel {

struct CpOptions {
  std::string method = "all_gather";
  std::string balance = "headtail";

  static void declare(OptionTable<CpOptions>& t) {
    using enum Affects;
    t.add(&CpOptions::method, "method", memory, {"all_gather", "ring", "ulysses"},
          "keys and values are gathered, or travel in a ring, or heads are exchanged for tokens");
    t.add(
        &CpOptions::balance, "balance", speed, {"headtail", "none"},
        "headtail: a chunk from either end, so that causal work is equal; none: contiguous parts");
  }
};

/// Context parallelism: n = cp ranks hold tau = S / n tokens of each sequence. Ids, labels (shifted
/// before), positions and masks follow Sequence; all but attention is local. With d = H * dh, kd =
/// Hkv * dh and e, e_r bytes per element computed and reduced, wire bytes of a rank, layer and
/// sequence:
///
///   all_gather  arXiv:2407.21783  forward: AG of K and V        2 tau kd e (n - 1)
///                                 backward: RS of dK and dV     2 tau kd e_r (n - 1)
///   ring        arXiv:2310.01889  forward: K and V, n - 1 hops  2 tau kd e (n - 1)
///                                 backward: the same, dK, dV    2 tau kd (e + e_r) (n - 1)
///   ulysses     arXiv:2309.14509  either: four all_to_all       2 tau (d + kd) e (n - 1) / n
///
/// all_gather keeps K and V of whole sequences for backward, ring its own tokens' alone (and holds
/// two blocks while it works), ulysses 1 / n of the heads of whole sequences. Merging of parts and
/// their gradients: merge_attention(), Ops::attention_part_backward(). Largest causal work of a
/// rank over the mean: 1 with headtail, (2n - 1) / n without.
class Cp final : public ParallelStrategy {
 public:
  using Options = CpOptions;
  explicit Cp(const Options& options) : options_(options) {}

  std::vector<int64_t> tokens(int64_t seq_len, const Mesh& mesh) const override;
  std::unique_ptr<Ops> wrap_ops(std::unique_ptr<Ops> next, const RankContext& context) override;
  std::vector<std::string> engagement() const override { return {"cp.messages", "cp.work"}; }

 private:
  const Options options_;
};

}  // namespace assay::parallel
