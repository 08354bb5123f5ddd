// ShardedSync: reduce_scatters gradients from the sinks into the stored shards, bundle by bundle.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "bundle.h"

namespace assay::parallel {

enum class SyncMicrobatches { every, last };

/// Gives every present parameter of the bundles its stored tensors: master and gradient.
void allocate_stored(const RankContext& context, const std::vector<const Bundle*>& bundles);

/// A bundle starts when all of its gradients of an armed microbatch are final; at most one message
/// is under way, so that memory holds two at most (the one that is packed and the one that is
/// sent). Gradients leave the sinks when they are packed.
class ShardedSync final : public GradientSync {
 public:
  ShardedSync(const RankContext& context, std::vector<const Bundle*> bundles,
              SyncMicrobatches microbatches, int64_t& counter);

  bool arms(int64_t microbatch, int64_t microbatches) const override;
  void ready(size_t parameter) override;
  void flush(std::span<const size_t> parameters) override;
  void wait() override;

 private:
  struct Progress {
    size_t ready = 0;      ///< members that are final
    bool started = false;  ///< in this step
    bool written = false;  ///< a reduction of this step has reached the gradients
  };
  struct Call {
    size_t bundle = 0;
    Work work{};
    Tensor message{}, mine{};
  };

  bool has_left(const Bundle& bundle) const;
  void start(size_t bundle);
  void finish();

  std::vector<Parameter>& parameters_;
  const at::ScalarType dtype_;
  const SyncMicrobatches microbatches_;
  int64_t& counter_;
  std::vector<const Bundle*> bundles_;
  std::vector<size_t> bundle_of_;  ///< by parameter
  std::vector<bool> is_ready_;     ///< by parameter
  std::vector<Progress> progress_;
  std::unique_ptr<Call> call_;
};

}  // namespace assay::parallel
