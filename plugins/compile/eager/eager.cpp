// Registration of compile/eager.
#include "eager.h"

#include "assay/plugin.h"

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::compile::Eager>({.name = "eager",
                                        .summary = "LibTorch's operators one by one",
                                        .provides = {"meta.safe", "bitwise.identical"}});
}
