// One line per kind.
#include "core/conformance/instance.h"

#include "assay/communicator.h"
#include "assay/compile.h"
#include "assay/data.h"
#include "assay/memory.h"
#include "assay/model.h"
#include "assay/optimizer.h"
#include "assay/parallel.h"
#include "assay/precision.h"

namespace assay::conformance {

std::shared_ptr<void> make_instance(const Subject& subject, const OptionValues& values) {
  const std::string& name = subject.entry->manifest.name;
  switch (subject.entry->kind) {
    case Kind::model:
      return registry().create<Model>(name, values);
    case Kind::parallel:
      return registry().create<ParallelStrategy>(name, values);
    case Kind::memory:
      return registry().create<MemoryPolicy>(name, values);
    case Kind::precision:
      return registry().create<Precision>(name, values);
    case Kind::compile:
      return registry().create<CompileBackend>(name, values);
    case Kind::optim:
      return registry().create<Optimizer>(name, values);
    case Kind::data:
      return registry().create<DataSource>(name, values);
    case Kind::comm:
      return registry().create<CommBackend>(name, values);
  }
  return nullptr;
}

}  // namespace assay::conformance
