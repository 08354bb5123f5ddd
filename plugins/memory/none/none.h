// none: every saved activation is kept.
#pragma once

#include "assay/memory.h"
#include "assay/options.h"

namespace assay::memory {

struct NoneOptions {
  static void declare(OptionTable<NoneOptions>&) {}
};

/// Keeps what backward needs. A bf16 Llama layer of T tokens: 2T(6d + 2kd + 4f) + 4T(2 + H) bytes
/// (d hidden, kd kv_heads * head_dim, f ffn, H heads; attention that saves O and LSE).
class None final : public MemoryPolicy {
 public:
  using Options = NoneOptions;
  explicit None(const Options&) {}

  Keep block(const BlockSpec&, int64_t) const override { return Keep::keep; }
};

}  // namespace assay::memory
