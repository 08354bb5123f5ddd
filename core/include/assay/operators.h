// OperatorLibrary: kernels as operators with CPU and Meta kernels, so that recompute, tracing, dry
// run and capture see them (two lines per kernel).
#pragma once

#include <torch/library.h>

#include <string>

namespace assay {

/// Owns the operators of one namespace; make one in a function static and keep it for good.
class OperatorLibrary {
 public:
  explicit OperatorLibrary(const std::string& name_space)
      : library_(torch::Library::FRAGMENT, name_space, std::nullopt, __FILE__, __LINE__) {}

  /// `schema` "norm(Tensor x, Tensor scale, float eps) -> (Tensor, Tensor)"; `meta` makes outputs
  /// of the right shapes. The same function serves both when it never reads values.
  template <auto cpu, auto meta = cpu>
  void add(const std::string& schema) {
    const std::string name = schema.substr(0, schema.find('('));
    library_.def(schema.c_str());
    library_.impl(name.c_str(), torch::dispatch(c10::DispatchKey::CPU,
                                                torch::CppFunction::makeFromUnboxedFunction(cpu)));
    library_.impl(name.c_str(), torch::dispatch(c10::DispatchKey::Meta,
                                                torch::CppFunction::makeFromUnboxedFunction(meta)));
  }

 private:
  torch::Library library_;
};

/// A typed handle on "namespace::name"; look it up once, in a function static.
template <class Signature>
auto find_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace assay
