// SavedAgain: what a primitive saves for backward is dropped and made again when it is needed.
#pragma once

#include <functional>
#include <memory>

#include "assay/api.h"
#include "assay/tensor.h"

namespace assay {

/// While alive on this thread, every view of `tensor` that is saved for backward is replaced by
/// `kept` (which `again` needs, and which the ledger counts) and a call of `again`, whose result is
/// viewed in the saved sizes. Other tensors are saved as before. Inside a recompute region nothing
/// happens: it saves nothing.
///
/// Sequence parallelism gathers its input again this way (arXiv:2205.05198, section 4.2.2).
class ASSAY_API SavedAgain {
 public:
  SavedAgain(const Tensor& tensor, Tensor kept, std::function<Tensor()> again);
  ~SavedAgain();
  SavedAgain(const SavedAgain&) = delete;
  SavedAgain& operator=(const SavedAgain&) = delete;

 private:
  struct Scope;
  std::unique_ptr<Scope> scope_;
};

}  // namespace assay
