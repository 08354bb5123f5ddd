// Registration of memory/none.
#include "none.h"

#include "assay/plugin.h"

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::memory::None>({.name = "none",
                                      .summary = "keeps every saved activation",
                                      .provides = {"meta.safe", "bitwise.identical"}});
}
