// Every rank judges the whole model, so that all ranks refuse alike.
#include "core/train/checkpoint_fit.h"

#include <map>

#include "assay/error.h"
#include "core/train/parameter_info.h"
#include "core/train/safetensors.h"

namespace assay::train {
namespace {

struct Wanted {
  std::string dtype{};
  Shape shape{};
  const ParameterSpec* spec = nullptr;  ///< of a weight
};

std::map<std::string, Wanted> wanted_tensors(const Assembly& a) {
  const Dtypes dtypes = a.recipe.precision->dtypes();
  std::map<std::string, Wanted> wanted;
  for (const Parameter& p : a.parameters) {
    const std::string& name = p.spec.name;
    wanted[name] = {safetensors_dtype(dtypes.master, name), p.spec.shape, &p.spec};
    for (const StateSlot& slot : a.recipe.optimizer->state_spec(info_of(p, dtypes))) {
      wanted[slot_name(slot, p.spec)] = {safetensors_dtype(slot.dtype, name),
                                         slot_shape(slot, p.spec)};
    }
  }
  for (const KeptTensor& k : a.kept) {
    wanted[k.name] = {safetensors_dtype(k.tensor.scalar_type(), k.name), k.shape};
  }
  return wanted;
}

// "vocabulary: checkpoint 256, run 512", once for embedding and head.
std::string vocabulary_problem(const Wanted& wanted, const checkpoint::TensorEntry& stored) {
  if (wanted.spec == nullptr || stored.shape.size() != wanted.shape.size()) return {};
  for (size_t d = 0; d < wanted.shape.size(); ++d) {
    if (stored.shape[d] == wanted.shape[d]) continue;
    if (wanted.spec->axes.at(d).axis != Axis::vocab) return {};
    return "\n  vocabulary   checkpoint " + std::to_string(stored.shape[d]) + ", run " +
           std::to_string(wanted.shape[d]);
  }
  return {};
}

class Problems {
 public:
  void tensor(const std::string& name, const Wanted& wanted,
              const checkpoint::TensorEntry& stored) {
    if (stored.shape != wanted.shape) {
      add("misshapen", name, checkpoint::print(stored.shape), checkpoint::print(wanted.shape));
      const std::string vocabulary = vocabulary_problem(wanted, stored);
      if (text_.find(vocabulary) == std::string::npos) text_ += vocabulary;
    }
    if (stored.dtype != wanted.dtype) add("other dtype", name, stored.dtype, wanted.dtype);
  }
  void missing(const std::string& name, const Wanted& wanted) {
    text_ += "\n  missing      " + name + " " + checkpoint::print(wanted.shape);
  }
  void extra(const std::string& name) { text_ += "\n  extra        " + name; }
  void setting(const char* what, const std::string& stored, const std::string& run) {
    if (stored != run)
      text_ += "\n  " + std::string(what) + "checkpoint " + stored + ", run " + run;
  }
  const std::string& text() const { return text_; }

 private:
  void add(const char* what, const std::string& name, const std::string& stored,
           const std::string& wanted) {
    std::string head = std::string("\n  ") + what;
    head.resize(16, ' ');
    text_ += head + name + ": checkpoint " + stored + ", run " + wanted;
  }
  std::string text_{};
};

// A cursor counts sequences in an order that seed, batch and rows of the data make.
void check_data(const Assembly& a, const checkpoint::Manifest& m, Problems& problems) {
  const BatchShape& batch = a.recipe.settings.batch;
  problems.setting("seed         ", std::to_string(m.seed), std::to_string(a.recipe.settings.seed));
  problems.setting("global_batch ", std::to_string(m.data.global_batch),
                   std::to_string(batch.global_batch));
  problems.setting("seq_len      ", std::to_string(m.data.seq_len), std::to_string(batch.seq_len));
  problems.setting("data         ", m.data.fingerprint, a.recipe.data->fingerprint());
}

}  // namespace

std::string slot_name(const StateSlot& slot, const ParameterSpec& parameter) {
  return "optim/" + slot.name + "/" + parameter.name;
}

Shape slot_shape(const StateSlot& slot, const ParameterSpec& parameter) {
  switch (slot.shape.kind) {
    case SlotShape::same:
      return parameter.shape;
    case SlotShape::square:
      return Shape(2, parameter.shape.at(static_cast<size_t>(slot.shape.dim)));
    case SlotShape::scalar:
      return {};
  }
  throw Error("state slot '" + slot.name + "' of " + parameter.name + " has an unknown shape");
}

void require_fit(const Assembly& a, const checkpoint::Manifest& manifest,
                 const std::filesystem::path& folder) {
  Problems problems;
  const auto wanted = wanted_tensors(a);
  for (const auto& [name, want] : wanted) {
    const auto stored = manifest.tensors.find(name);
    if (stored == manifest.tensors.end()) {
      problems.missing(name, want);
    } else {
      problems.tensor(name, want, stored->second);
    }
  }
  for (const auto& [name, tensor] : manifest.tensors) {
    // A pipeline rank knows what its own blocks keep, not what those of other ranks do.
    const bool unknown = tensor.kind == checkpoint::TensorKind::kept && a.context.pipelined;
    if (!wanted.contains(name) && !unknown) problems.extra(name);
  }
  check_data(a, manifest, problems);
  if (problems.text().empty()) return;
  throw Error("[R-CKPT] " + folder.string() + " does not fit this run:" + problems.text(),
              "resume with the model, optimizer, precision, data and seed that it was saved with; "
              "for its weights alone: `assay checkpoint convert`, then train.init_from");
}

}  // namespace assay::train
