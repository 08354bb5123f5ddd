// float8: linear layers in 8-bit floats over a bf16 base.
#pragma once

#include "assay/options.h"
#include "assay/precision.h"

namespace assay::precision {

struct Float8Options {
  std::string recipe = "tensorwise";
  std::string base = "bf16";
  std::vector<std::string> filter{};
  bool auto_filter_small = false;

  static void declare(OptionTable<Float8Options>& t) {
    using enum Affects;
    using O = Float8Options;
    t.add(&O::recipe, "recipe", numerics, {"tensorwise", "rowwise", "rowwise_gw_hp"},
          "what shares a scale, and which products are 8-bit");
    t.add(&O::base, "base", numerics, {"bf16", "fp32"}, "dtypes of everything that stays wider");
    t.add(&O::filter, "filter", numerics, "globs of weights that stay in the base");
    t.add(&O::auto_filter_small, "auto_filter_small", numerics,
          "weights too small to gain on an H100 stay in the base");
  }
};

/// 8-bit training as in TorchAO, arXiv:2507.16099, formats of arXiv:2209.05433. The linear weights
/// of the layers are converted, the head is not; a weight with a side that is no multiple of 16 is
/// left in the base and counted. Scales are of the current values. Products are emulated in fp32,
/// so a run shows numerics and no speed.
///
/// Counters: float8.converted, float8.skipped, float8.skipped.<name> (weights).
class Float8 final : public Precision {
 public:
  using Options = Float8Options;
  explicit Float8(const Options& options) : options_(options) {}

  Dtypes dtypes() const override;
  /// Throws Error: [R-F8FILTER] a glob that matches nothing, [R-F8NONE] no weight is converted.
  std::unique_ptr<Ops> wrap_ops(std::unique_ptr<Ops> next, const RankContext& context) override;
  bool numerics_only() const override { return true; }
  std::vector<std::string> engagement() const override { return {"float8.converted"}; }

 private:
  bool converts(const ParameterSpec& spec) const;

  const Options options_;
};

}  // namespace assay::precision
