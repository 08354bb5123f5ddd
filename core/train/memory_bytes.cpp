// Sums over the tensors of parameters and optimizer state.
#include "core/train/memory_bytes.h"

#include "assay/storage.h"

namespace assay::train {
namespace {

int64_t bytes(const Tensor& tensor) {
  return tensor.defined() && has_storage(tensor) ? static_cast<int64_t>(tensor.nbytes()) : 0;
}

void add(MemoryBytes& sum, const Parameter& p) {
  // Weights that come and go leave the master as what stands for the parameter between steps.
  const int64_t weight = bytes(p.weight);
  sum.parameters += weight > 0 ? weight : bytes(p.master);
  if (weight > 0 && !p.master.is_same(p.weight)) sum.optimizer += bytes(p.master);
  // A sink that stays unsharded holds the reduced gradient within it.
  const Tensor& total = p.sink.total();
  const bool within = total.defined() && p.gradient.is_alias_of(total);
  sum.gradients += within ? bytes(total) : bytes(p.gradient) + bytes(total);
}

}  // namespace

MemoryBytes memory_bytes(const Assembly& a) {
  MemoryBytes sum;
  for (const Parameter& p : a.parameters) {
    if (p.present) add(sum, p);
  }
  for (const ParameterShard& s : a.shards) {
    for (const Tensor& t : s.state) sum.optimizer += bytes(t);
  }
  for (const auto& [name, value] : a.counters) {
    if (name.ends_with(".peak_unsharded_bytes")) sum.unsharded += value;
  }
  return sum;
}

}  // namespace assay::train
