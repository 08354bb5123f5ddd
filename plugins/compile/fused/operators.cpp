// The library of the operators assay_fused::*.
#include "operators.h"

#include "operator_groups.h"

namespace assay::fused {

void register_operators() {
  static OperatorLibrary* library = [] {  // kept for good
    auto* made = new OperatorLibrary("assay_fused");
    add_row_operators(*made);
    add_linear_operators(*made);
    add_attention_operators(*made);
    add_loss_operators(*made);
    return made;
  }();
  (void)library;
}

}  // namespace assay::fused
