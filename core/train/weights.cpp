// Names are the model's own (Hugging Face Llama names), so both directions are copies.
#include "core/train/weights.h"

#include <ATen/core/grad_mode.h>

#include <sstream>

#include "assay/error.h"
#include "core/train/safetensors.h"

namespace assay::train {
namespace {

// Gathers a tensor-parallel box; other cuts bring their own gather with the strategy that makes
// them.
Tensor whole_tensor(Assembly& a, size_t index) {
  const ParameterPlacement& placement = a.parameters[index].placement;
  Tensor value = a.shards[index].master.detach();
  const auto dim = placement.cut_by(MeshDim::tp);
  if (!dim) return value;
  Communicator& tp = a.groups(MeshDim::tp);
  const Tensor mine = value.movedim(*dim, 0).contiguous();
  Shape shape = mine.sizes().vec();
  shape[0] = placement.spec().shape[static_cast<size_t>(*dim)];
  if (shape[0] != mine.size(0) * tp.size()) {
    throw Error(placement.spec().name + " is cut unevenly over tp; exporting it is not supported",
                "choose a mesh.tp that divides its dimension " + std::to_string(*dim));
  }
  Tensor out = at::empty(shape, mine.options());
  tp.all_gather(out, mine).wait();
  return out.movedim(0, *dim).contiguous();
}

std::string shape_text(at::IntArrayRef shape) {
  std::ostringstream text;
  text << shape;
  return text.str();
}

void check_names(const Assembly& a, const NamedTensors& file_tensors,
                 const std::filesystem::path& file) {
  std::string problems;
  NamedTensors extra = file_tensors;
  for (const Parameter& p : a.parameters) {
    const auto found = file_tensors.find(p.spec.name);
    extra.erase(p.spec.name);
    if (found == file_tensors.end()) {
      problems += "\n  missing   " + p.spec.name + " " + shape_text(p.spec.shape);
    } else if (found->second.sizes() != at::IntArrayRef(p.spec.shape)) {
      problems += "\n  misshapen " + p.spec.name + ": file " + shape_text(found->second.sizes()) +
                  ", model " + shape_text(p.spec.shape);
    }
  }
  for (const auto& [name, tensor] : extra) problems += "\n  extra     " + name;
  if (!problems.empty()) {
    throw Error(file.string() + " does not fit the model:" + problems,
                "use the flavour and vocabulary that the file was exported from");
  }
}

}  // namespace

void export_weights(Assembly& a, const std::filesystem::path& file) {
  const at::NoGradGuard no_grad;
  NamedTensors tensors;
  for (size_t i = 0; i < a.parameters.size(); ++i) {
    tensors[a.parameters[i].spec.name] = whole_tensor(a, i);
  }
  if (a.mesh.rank() == 0) write_safetensors(file, tensors, {{"format", "pt"}});
}

void import_weights(Assembly& a, const std::filesystem::path& file) {
  const at::NoGradGuard no_grad;
  const NamedTensors tensors = read_safetensors(file);
  check_names(a, tensors, file);
  for (size_t i = 0; i < a.parameters.size(); ++i) {
    Tensor value = tensors.at(a.parameters[i].spec.name);
    const Box& box = a.parameters[i].placement.box();
    for (size_t d = 0; d < box.size.size(); ++d) {
      value = value.narrow(static_cast<int64_t>(d), box.begin[d], box.size[d]);
    }
    a.shards[i].master.copy_(value);
    if (!a.shards[i].master.is_same(a.shards[i].weight))
      a.shards[i].weight.copy_(a.shards[i].master);
  }
}

}  // namespace assay::train
