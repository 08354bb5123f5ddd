// Names are the model's own (Hugging Face Llama names), so both directions are copies.
#include "core/train/weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <sstream>

#include "assay/error.h"
#include "core/train/gradients.h"
#include "core/train/safetensors.h"

namespace assay::train {
namespace {

// The part of `tensor` (global shape) that lies in a box.
Tensor part(Tensor tensor, const Box& box) {
  for (size_t d = 0; d < box.size.size(); ++d) {
    tensor = tensor.narrow(static_cast<int64_t>(d), box.begin[d], box.size[d]);
  }
  return tensor;
}

// Every rank puts its box into zeros; ranks that hold copies of a box leave it to the first.
Tensor whole_tensor(Assembly& a, size_t index) {
  const Parameter& p = a.parameters[index];
  Tensor tensor = at::zeros(p.spec.shape, at::TensorOptions(a.recipe.precision->dtypes().master));
  if (p.present && holds_first_copy(a, p)) part(tensor, p.stored.box()).copy_(p.master);
  a.groups(MeshGroup::world).all_reduce(tensor).wait();
  return tensor;
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
  for (Parameter& p : a.parameters) {
    if (p.present) p.master.copy_(part(tensors.at(p.spec.name), p.stored.box()));
  }
  publish(a);
}

}  // namespace assay::train
