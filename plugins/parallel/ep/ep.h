// parallel/ep: each rank holds some experts of every layer, and tokens travel to them.
#pragma once

#include "assay/options.h"
#include "assay/parallel.h"

namespace assay::parallel {

struct EpOptions {
  static void declare(OptionTable<EpOptions>&) {}
};

/// Expert parallelism over all-to-all, arXiv:2006.16668.
///
///   dispatch: counts to the experts' ranks (phase control), then the rows
///   combine:  the experts' rows back to the ranks of their tokens
///   wire bytes of each of the four data messages of a layer and microbatch (two forward, two
///   backward) = (pairs of this rank whose expert is elsewhere) d e forward, the reverse on the
///   way back; k T d e w(ep) if choices are uniform
///
/// An expert meets its rows in the order (source rank, token, slot) and they are padded to a
/// multiple of pad_rows, so that forward gives the same bits for every ep.
class Ep final : public ParallelStrategy {
 public:
  using Options = EpOptions;
  explicit Ep(const Options&) {}

  void place(ParameterPlacement& placement, const Mesh& mesh) const override;
  std::unique_ptr<Ops> wrap_ops(std::unique_ptr<Ops> next, const RankContext& context) override;
  std::vector<std::string> engagement() const override { return {"ep.messages"}; }
};

}  // namespace assay::parallel
