// The operators of this plugin by file; each group adds its own to the one library.
#pragma once

#include "assay/operators.h"

namespace assay::fused {

void add_row_operators(OperatorLibrary& library);
void add_linear_operators(OperatorLibrary& library);
void add_attention_operators(OperatorLibrary& library);
void add_loss_operators(OperatorLibrary& library);

}  // namespace assay::fused
