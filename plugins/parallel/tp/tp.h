// parallel/tp: weights cut by heads, ffn columns and vocabulary; with sp, the rest by sequence.
#pragma once

#include "assay/options.h"
#include "assay/parallel.h"

namespace assay::parallel {

struct TpOptions {
  bool sp = true;
  bool regather = true;

  static void declare(OptionTable<TpOptions>& t) {
    using enum Affects;
    t.add(&TpOptions::sp, "sp", memory, {},
          "sequence parallel: between the column and row pairs, activations are cut by sequence");
    t.add(&TpOptions::regather, "regather", memory, {},
          "gather the input of column-parallel products again in backward instead of keeping it");
  }
};

/// Tensor parallelism, arXiv:1909.08053; sequence parallelism, arXiv:2205.05198; cross entropy on
/// vocabulary shards.
///
///   column: Y_i = X A_i        input enters: AG along the sequence (sp), or as it is
///   row:    Y = sum of X_i B_i output leaves: RS along the sequence (sp), or AR
///   wire bytes of a layer and microbatch: 4 T d e w(tp) forward, the same backward, 2 more with
///   regather; statistics of the loss 6 e_s T w(tp)
///
/// A weight is cut on its first axis among vocab, heads, kv_heads and ffn; expert weights are ep's.
class Tp : public ParallelStrategy {
 public:
  using Options = TpOptions;
  explicit Tp(const Options& options) : options_(options) {}

  void place(ParameterPlacement& placement, const Mesh& mesh) const override;
  int64_t sequence_parts(const Mesh& mesh) const override;
  std::unique_ptr<Ops> wrap_ops(std::unique_ptr<Ops> next, const RankContext& context) override;
  std::vector<std::string> engagement() const override { return {"tp.column", "tp.row"}; }

 private:
  const Options options_;
};

}  // namespace assay::parallel
