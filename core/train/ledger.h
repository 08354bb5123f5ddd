// Ledger: the bytes that autograd keeps for backward, counted where they are saved.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_set>

#include "assay/api.h"
#include "assay/tensor.h"
#include "core/intercept/saved_hooks.h"

namespace assay::train {

/// While a scope is open on this thread, every saved tensor counts once per storage view. What the
/// engines keep by themselves (a recompute region's input and kept outputs) they report.
class ASSAY_API Ledger {
 public:
  void add(const Tensor& tensor);
  int64_t bytes() const { return bytes_; }

  /// The ledger of the innermost open scope of this thread, or null.
  static Ledger* current();

 private:
  std::unordered_set<const void*> seen_;
  std::vector<Tensor> alive_;  // so that a freed address cannot be taken for a counted one
  int64_t bytes_ = 0;
};

class ASSAY_API LedgerScope {
 public:
  explicit LedgerScope(Ledger& ledger);
  ~LedgerScope();
  LedgerScope(const LedgerScope&) = delete;
  LedgerScope& operator=(const LedgerScope&) = delete;

 private:
  intercept::SavedHooksScope hooks_;
  Ledger* outer_;
};

}  // namespace assay::train
