// compile/eager: LibTorch's operators one by one; the baseline of every compile backend.
#pragma once

#include "assay/compile.h"

namespace assay::compile {

/// Adds nothing: core's eager operations serve as they are.
class Eager final : public CompileBackend {};

}  // namespace assay::compile
