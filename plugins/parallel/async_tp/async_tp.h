// parallel/async_tp: tensor parallelism whose gathers and scatters travel in pieces between the
// products that need or make them.
#pragma once

#include <cstdint>

#include "../tp/tp.h"
#include "assay/options.h"

namespace assay::parallel {

struct AsyncTpOptions {
  int64_t pieces = 1;

  static void declare(OptionTable<AsyncTpOptions>& t) {
    t.add(&AsyncTpOptions::pieces, "pieces", Affects::speed, {1, 2},
          "messages that each rank's part of the sequence is cut into (chunks = pieces x tp)");
  }
};

/// Sequence parallel tensor parallelism (parallel/tp with sp) in which
///
///   all_gather + product:   a piece of the input is multiplied as soon as it has come
///   product + reduce_scatter: a piece of the output is sent as soon as it is computed, and the
///                           ranks' pieces are added in rank order
///
/// The bytes are those of parallel/tp; (tp - 1) * pieces messages take the place of a collective.
/// The gather side gives the bits of parallel/tp, the scatter side its numbers.
class AsyncTp final : public Tp {
 public:
  using Options = AsyncTpOptions;
  explicit AsyncTp(const Options& options) : Tp(TpOptions{}), options_(options) {}

  std::unique_ptr<Ops> wrap_ops(std::unique_ptr<Ops> next, const RankContext& context) override;
  std::vector<std::string> engagement() const override {
    return {"async_tp.gathers", "async_tp.scatters"};
  }

 private:
  const Options options_;
};

}  // namespace assay::parallel
