// Operator profile: how often each operator ran on this thread, and its own time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "assay/api.h"

namespace assay::intercept {

struct OpTotal {
  int64_t calls = 0;
  int64_t self_ns = 0;  ///< without the operators that it called
};

/// While alive, counts every operator call of this thread that goes through LibTorch's dispatcher:
/// forward, backward and optimizer, operators called by operators too. Costs about a microsecond a
/// call. One at a time per thread.
class ASSAY_API OpProfile {
 public:
  OpProfile();
  ~OpProfile();
  OpProfile(const OpProfile&) = delete;
  OpProfile& operator=(const OpProfile&) = delete;

  /// By name ("aten::mm"), of the calls that ended.
  const std::map<std::string, OpTotal>& totals() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::intercept
