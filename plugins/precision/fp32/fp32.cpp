// Registration of precision/fp32.
#include "fp32.h"

#include "assay/plugin.h"

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::precision::Fp32>(
      {.name = "fp32", .summary = "single precision throughout", .provides = {"meta.safe"}});
}
