// Registers parallel/tp.
#include "tp.h"

#include "assay/plugin.h"

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::parallel::Tp>(
      {.name = "tp",
       .summary = "tensor, sequence and loss parallelism",
       .reference = "arXiv:2205.05198",
       .provides = {"meta.safe"},
       .rules =
           {{"R-TPHEADS", "facts.heads % mesh.tp == 0 and facts.kv_heads % mesh.tp == 0",
             "heads cannot be cut: mesh.tp must divide the heads and the kv_heads of the model"},
            {"R-TPFFN", "facts.ffn % mesh.tp == 0", "mesh.tp must divide the ffn width"},
            {"R-SPSEQ", "not sp or model.seq_len % (mesh.tp * mesh.cp) == 0",
             "with sp, mesh.tp times mesh.cp must divide model.seq_len"}},
       .dims = {"tp"}});
}
