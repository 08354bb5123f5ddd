// Saved-tensor hooks: a stack per thread of which only the innermost runs (LibTorch's rule); core's
// recompute, ledger and regather push here and compose by hand.
#pragma once

#include <functional>
#include <memory>

#include "assay/api.h"
#include "assay/tensor.h"

namespace assay::intercept {

/// Called once per saved tensor; the result is called when backward needs it.
using Pack = std::function<std::function<Tensor()>(const Tensor& saved)>;

/// While alive, `pack` replaces how this thread saves tensors for backward.
class ASSAY_API SavedHooksScope {
 public:
  explicit SavedHooksScope(Pack pack);
  ~SavedHooksScope();
  SavedHooksScope(const SavedHooksScope&) = delete;
  SavedHooksScope& operator=(const SavedHooksScope&) = delete;
};

/// True inside a scope.
ASSAY_API bool saved_hooks_active();

}  // namespace assay::intercept
