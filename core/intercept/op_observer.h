// Op observers: see, and may answer, every operator call below autograd on this thread, forward,
// backward and optimizer alike (a boxed fallback on a free dispatch key).
#pragma once

#include <functional>
#include <string_view>

#include "assay/api.h"
#include "assay/tensor.h"

namespace assay::intercept {

/// One operator call. Values are on `stack()` as the dispatcher holds them.
class ASSAY_API OpCall {
 public:
  virtual ~OpCall() = default;
  virtual std::string_view name() const = 0;  ///< "aten::mm", "assay::linear"
  virtual void run() = 0;                     ///< the operator itself, outputs replace the inputs
  /// After run(): every tensor among the outputs, lists flattened.
  virtual Tensors outputs() const = 0;
  /// Instead of run(): takes the inputs off and answers with these tensors, in the schema's shape
  /// (one output that is a list, or one value per output).
  virtual void answer(const Tensors& outputs) = 0;
  /// The Tensor[] argument `index`, and its replacement before run().
  virtual Tensors list_argument(size_t index) const = 0;
  virtual void set_list_argument(size_t index, const Tensors& list) = 0;
  /// After run(), for an operator whose one output is a list: that list.
  virtual void replace_output_list(const Tensors& list) = 0;
};

using OpObserver = std::function<void(OpCall&)>;

/// While alive, `observer` handles this thread's operator calls; only the innermost one runs.
class ASSAY_API OpObserverScope {
 public:
  explicit OpObserverScope(OpObserver observer);
  ~OpObserverScope();
  OpObserverScope(const OpObserverScope&) = delete;
  OpObserverScope& operator=(const OpObserverScope&) = delete;

 private:
  struct Guard;
  std::unique_ptr<Guard> guard_;
};

}  // namespace assay::intercept
