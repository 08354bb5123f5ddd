// Registration of precision/fp64.
#include "fp64.h"

#include "assay/plugin.h"

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::precision::Fp64>({.name = "fp64",
                                         .summary = "double precision throughout, numerics only",
                                         .provides = {"meta.safe"}});
}
