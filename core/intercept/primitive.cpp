// The one custom autograd Function: every primitive of every Ops layer runs through it.
#include "assay/primitive.h"

#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace assay {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct PrimitiveRule : torch::CustomClassHolder {
  PrimitiveRule(const PrimitiveForward& f, PrimitiveBackward b)
      : forward(f), backward(std::move(b)) {}
  const PrimitiveForward& forward;  // only called while primitive() runs
  PrimitiveBackward backward;
  size_t inputs = 0;
};

struct PrimitiveFunction : torch::autograd::Function<PrimitiveFunction> {
  static variable_list forward(AutogradContext* context, at::TensorList inputs,
                               const c10::intrusive_ptr<PrimitiveRule>& rule) {
    Tensors saved;
    auto outputs = rule->forward(inputs.vec(), saved);
    rule->inputs = inputs.size();
    context->save_for_backward(std::move(saved));
    context->set_materialize_grads(false);
    context->saved_data["rule"] = c10::IValue::make_capsule(rule);  // IValues only
    return outputs;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    auto rule =
        c10::static_intrusive_pointer_cast<PrimitiveRule>(context->saved_data["rule"].toCapsule());
    auto result = rule->backward(context->get_saved_variables(), gradients);
    result.resize(rule->inputs + 1);  // one for the rule itself
    return result;
  }
};

}  // namespace

Tensors primitive(const Tensors& inputs, const PrimitiveForward& forward,
                  PrimitiveBackward backward) {
  auto rule = c10::make_intrusive<PrimitiveRule>(forward, std::move(backward));
  return PrimitiveFunction::apply(at::TensorList(inputs), rule);
}

}  // namespace assay
