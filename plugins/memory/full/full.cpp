// Registration of memory/full.
#include "full.h"

#include "assay/plugin.h"

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::memory::Full>({.name = "full",
                                      .summary = "recomputes every layer from its input",
                                      .reference = "arXiv:1604.06174",
                                      .provides = {"meta.safe", "bitwise.identical"}});
}
