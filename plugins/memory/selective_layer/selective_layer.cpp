// Registration of memory/selective_layer.
#include "selective_layer.h"

#include "assay/plugin.h"

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::memory::SelectiveLayer>({.name = "selective_layer",
                                                .summary = "recomputes every n-th layer",
                                                .reference = "arXiv:1604.06174",
                                                .provides = {"meta.safe", "bitwise.identical"}});
}
