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

/// Context parallelism: tau = S / cp tokens of each sequence on a rank. Ids, labels (shifted
/// before), positions and masks follow Sequence; all but attention is local. n = cp, kd = Hkv * dh,
/// d = H * dh, e and e_r bytes per element computed and reduced; wire bytes of a rank, layer and
/// sequence:
///
///   all_gather  arXiv:2407.21783  AG of K, V: 2 tau kd e (n - 1)     RS of dK, dV: 2 tau kd e_r (n
///   - 1)
///                                 keeps K and V of the whole sequence
///   ring        arXiv:2310.01889  K, V in n - 1 steps: the same      K, V again and dK, dV
///                                 keeps its own block, holds two
///   ulysses     arXiv:2309.14509  4 all_to_all: 2 tau (d + kd) e w(n)    the same
///                                 keeps the sequence with 1 / n of the heads
///
/// Merging and its backward (O of all keys from parts O_j with lse_j, and gradients from the lse of
/// all keys): merge_attention(), Ops::attention_part_backward(). Largest causal work over the mean:
/// 1 with headtail, (2n - 1) / n without.
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
