// MemoryPolicy: the contract of kind `memory`. A policy only decides; the recompute engine is
// core's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "assay/kind.h"
#include "assay/model.h"

namespace assay {

enum class Keep { keep, recompute };

/// One output inside a recomputed block, in the order of the forward.
struct OpUse {
  std::string_view op{};       ///< operator name: "assay::linear", "assay::attention", ...
  int64_t linear_number = -1;  ///< of this linear weight in the block, in call order; else -1
  std::string_view weight{};   ///< parameter name of that weight
};

/// Called:   block() once per block while assembling, op() for every output in each forward; the
///           same answer on every call and every rank. Numerics: the same bits as memory/none.
class ASSAY_API MemoryPolicy {
 public:
  static constexpr Kind kind = Kind::memory;
  virtual ~MemoryPolicy();

  /// Whether the saved tensors of this block are kept, or dropped and computed again.
  virtual Keep block(const BlockSpec& block, int64_t layers) const = 0;

  /// True: op() is asked inside recomputed blocks and what it keeps is not computed again.
  virtual bool selective() const { return false; }
  virtual Keep op(const OpUse&) const { return Keep::recompute; }

  /// Counters that must be above zero: "recompute.blocks" unless the policy is `none`.
  virtual std::vector<std::string> engagement() const { return {}; }
};

}  // namespace assay
