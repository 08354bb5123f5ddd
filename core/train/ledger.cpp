// The ledger's hook: counts a tensor and saves it as it is.
#include "core/train/ledger.h"

namespace assay::train {
namespace {
thread_local Ledger* open_ledger = nullptr;
}

void Ledger::add(const Tensor& tensor) {
  if (!tensor.defined()) return;
  const void* identity = tensor.storage().unsafeGetStorageImpl();
  if (!seen_.insert(identity).second) return;
  alive_.push_back(tensor.detach());
  bytes_ += static_cast<int64_t>(tensor.nbytes());
}

Ledger* Ledger::current() { return open_ledger; }

LedgerScope::LedgerScope(Ledger& ledger)
    : hooks_([&ledger](const Tensor& saved) {
        ledger.add(saved);
        return [saved = saved.detach()] { return saved; };
      }),
      outer_(open_ledger) {
  open_ledger = &ledger;
}

LedgerScope::~LedgerScope() { open_ledger = outer_; }

}  // namespace assay::train
