// Boxes decide everything: what is saved, what is read, and who saves what several ranks hold.
#include "core/train/checkpoint.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include "assay/error.h"
#include "core/checkpoint/reader.h"
#include "core/train/checkpoint_fit.h"
#include "core/train/gradients.h"
#include "core/train/parameter_info.h"
#include "core/train/safetensors.h"

namespace assay::train {
namespace {

using checkpoint::Region;
using checkpoint::TensorKind;

Region region_of(const Box& box) { return {box.begin, box.size}; }

// Of the ranks that hold a part of the parameter, the first.
bool holds_first_part(const Assembly& a, const Parameter& p) {
  return holds_first_copy(a, p) && a.mesh.index(p.placement.shard_group()) == 0 &&
         a.mesh.coordinate(MeshDim::tp) == 0 && a.mesh.coordinate(MeshDim::ep) == 0;
}

StatePart slot_part(const Assembly& a, const Parameter& p, const StateSlot& slot,
                    const Tensor& tensor) {
  const bool same = slot.shape.kind == SlotShape::same;
  StatePart part{.name = slot_name(slot, p.spec),
                 .kind = TensorKind::optimizer,
                 .dtype = safetensors_dtype(slot.dtype, p.spec.name),
                 .shape = slot_shape(slot, p.spec),
                 .tensor = tensor};
  part.box = same ? region_of(p.stored.box()) : checkpoint::whole(part.shape);
  part.first_copy = same ? holds_first_copy(a, p) : holds_first_part(a, p);
  return part;
}

void read_part(checkpoint::Reader& reader, StatePart& part) {
  const auto options = part.tensor.options().device(at::kCPU);
  Tensor host = at::empty(part.tensor.sizes(), options);
  reader.read(part.name, part.box, static_cast<std::byte*>(host.mutable_data_ptr()));
  part.tensor.copy_(host);
}

// Ranks that could not read would leave the others waiting in the next collective.
void throw_together(Assembly& a, const std::string& problem, const std::string& hint) {
  const PhaseScope phase("checkpoint");
  Tensor failed =
      at::full({1}, problem.empty() ? 0.0 : 1.0, at::TensorOptions(at::kDouble).device(a.device));
  a.groups(MeshGroup::world).all_reduce(failed).wait();
  if (!problem.empty()) throw Error(problem, hint);
  if (!a.device.is_meta() && failed.item<double>() > 0) {
    throw Error("another rank could not load the checkpoint", "its own message says why");
  }
}

}  // namespace

std::vector<StatePart> state_parts(Assembly& a) {
  const Dtypes dtypes = a.recipe.precision->dtypes();
  std::vector<StatePart> parts;
  for (size_t i = 0; i < a.shards.size(); ++i) {
    const Parameter& p = a.parameters[a.parameter_of[i]];
    parts.push_back({.name = p.spec.name,
                     .dtype = safetensors_dtype(dtypes.master, p.spec.name),
                     .shape = p.spec.shape,
                     .box = region_of(p.stored.box()),
                     .tensor = p.master,
                     .first_copy = holds_first_copy(a, p)});
    const auto slots = a.recipe.optimizer->state_spec(info_of(p, dtypes));
    for (size_t s = 0; s < slots.size(); ++s) {
      parts.push_back(slot_part(a, p, slots[s], a.shards[i].state.at(s)));
    }
  }
  for (const KeptTensor& k : a.kept) {
    parts.push_back({.name = k.name,
                     .kind = TensorKind::kept,
                     .dtype = safetensors_dtype(k.tensor.scalar_type(), k.name),
                     .shape = k.shape,
                     .box = region_of(k.box),
                     .tensor = k.tensor,
                     .first_copy = k.first_copy});
  }
  return parts;
}

std::vector<checkpoint::ShardTensor> shard_tensors(const std::vector<StatePart>& parts, bool copy,
                                                   std::vector<Tensor>& copies) {
  const at::NoGradGuard no_grad;
  std::vector<checkpoint::ShardTensor> shard;
  for (const StatePart& p : parts) {
    if (!p.first_copy || p.tensor.numel() == 0) continue;
    Tensor host = p.tensor.detach().to(at::kCPU, p.tensor.scalar_type(), false, copy).contiguous();
    shard.push_back({.name = p.name,
                     .kind = p.kind,
                     .dtype = p.dtype,
                     .shape = p.shape,
                     .box = p.box,
                     .data = static_cast<const std::byte*>(host.const_data_ptr())});
    copies.push_back(std::move(host));
  }
  return shard;
}

checkpoint::Manifest manifest_head(const Assembly& a, int64_t step, const nlohmann::json& config) {
  const BatchShape& batch = a.recipe.settings.batch;
  return {.step = step,
          .seed = a.recipe.settings.seed,
          .world = a.mesh.world(),
          .data = {.fingerprint = a.recipe.data->fingerprint(),
                   .next_sample = step * batch.global_batch,
                   .global_batch = batch.global_batch,
                   .seq_len = batch.seq_len},
          .config = config};
}

int64_t load_checkpoint(Assembly& a, const std::filesystem::path& folder) {
  const at::NoGradGuard no_grad;
  std::string problem, hint;
  int64_t step = 0;
  try {
    checkpoint::Reader reader(folder);
    require_fit(a, reader.manifest(), folder);
    for (StatePart& part : state_parts(a)) read_part(reader, part);
    step = reader.manifest().step;
  } catch (const Error& error) {
    problem = error.what();
    hint = error.hint();
  }
  throw_together(a, problem, hint);
  const PhaseScope phase("checkpoint");
  publish(a);
  return step;
}

}  // namespace assay::train
