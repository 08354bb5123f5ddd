// comm/fake: any world size with no peers, for dry runs on meta tensors and for planning.
#pragma once

#include <memory>

#include "assay/communicator.h"
#include "assay/options.h"

namespace assay::comm {

struct FakeOptions {
  static void declare(OptionTable<FakeOptions>&) {}
};

/// Counts every call. Meta tensors stay as they are; on real ones every peer is taken to be a
/// mirror of this rank: a sum is n times the input, a gather n copies, a received tensor is zero.
class FakeBackend final : public CommBackend {
 public:
  using Options = FakeOptions;
  explicit FakeBackend(const Options&) {}
  std::shared_ptr<Communicator> connect(const GroupSpec& spec) override;
};

}  // namespace assay::comm
