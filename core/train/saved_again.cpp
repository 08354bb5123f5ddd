// A pack that looks at storage and passes everything else on to the pack around it.
#include "assay/saved_again.h"

#include <utility>

#include "core/intercept/saved_hooks.h"
#include "core/train/ledger.h"

namespace assay {

struct SavedAgain::Scope {
  explicit Scope(intercept::Pack pack) : hooks(std::move(pack)) {}
  intercept::SavedHooksScope hooks;
};

SavedAgain::SavedAgain(const Tensor& tensor, Tensor kept, std::function<Tensor()> again) {
  if (intercept::innermost_replays()) return;
  const void* storage = tensor.storage().unsafeGetStorageImpl();
  scope_ = std::make_unique<Scope>(
      [storage, kept = std::move(kept), again = std::move(again),
       outer = intercept::innermost_pack()](const Tensor& saved) -> std::function<Tensor()> {
        if (saved.storage().unsafeGetStorageImpl() == storage) {
          if (train::Ledger* ledger = train::Ledger::current()) ledger->add(kept);
          return [again, sizes = saved.sizes().vec()] { return again().view(sizes); };
        }
        if (outer) return (*outer)(saved);
        return [saved = saved.detach()] { return saved; };
      });
}

SavedAgain::~SavedAgain() = default;

}  // namespace assay
