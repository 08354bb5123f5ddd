// Registration of precision/bf16.
#include "bf16.h"

#include "assay/plugin.h"

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::precision::Bf16>({.name = "bf16",
                                         .summary = "fp32 parameters, bfloat16 products",
                                         .reference = "arXiv:1710.03740",
                                         .provides = {"meta.safe"}});
}
