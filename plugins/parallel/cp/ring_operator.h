// The ring's forward as one operator, assay_cp::attention, so that selective recompute keeps the
// merged output once instead of every step's, and then replays no step.
#pragma once

#include "partial.h"

namespace assay::parallel {

/// Defines the operator; once per process, in the plugin's registration.
void register_ring_operator();

/// What the operator runs. Found again by handle(), unique in this process.
class RingAttention {
 public:
  RingAttention();
  virtual ~RingAttention();
  RingAttention(const RingAttention&) = delete;
  RingAttention& operator=(const RingAttention&) = delete;

  virtual AttentionPart run(const Operands& x, const AttentionSpec& spec) = 0;
  int64_t handle() const { return handle_; }

 private:
  const int64_t handle_;
};

/// ring.run(x, spec), through the dispatcher; softmax and causal.
AttentionPart call_ring(const RingAttention& ring, const Operands& x, const AttentionSpec& spec);

}  // namespace assay::parallel
