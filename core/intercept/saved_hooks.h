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

/// Whether a pack keeps tensors, or drops them all because they will be computed again.
enum class Packing { keeps, replays };

/// While alive, `pack` replaces how this thread saves tensors for backward.
class ASSAY_API SavedHooksScope {
 public:
  explicit SavedHooksScope(Pack pack, Packing packing = Packing::keeps);
  ~SavedHooksScope();
  SavedHooksScope(const SavedHooksScope&) = delete;
  SavedHooksScope& operator=(const SavedHooksScope&) = delete;
};

/// The pack that runs on this thread, for one that wants to pass tensors on to it; null outside
/// every scope.
ASSAY_API std::shared_ptr<const Pack> innermost_pack();
ASSAY_API bool innermost_replays();

}  // namespace assay::intercept
