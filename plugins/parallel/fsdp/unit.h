// Unit: parameters that are made whole together before use and freed after it.
#pragma once

#include <algorithm>

#include "../shards/bundle.h"

namespace assay::parallel {

/// What a rank holds unsharded over all of its units, gather buffers included.
struct Unsharded {
  int64_t& peak_bytes;
  int64_t& gathers;
  int64_t bytes = 0;

  void add(int64_t more) { peak_bytes = std::max(peak_bytes, bytes += more); }
};

/// The weights of the members are views of one buffer, whose storage comes and goes. Who needs
/// them acquires; when nobody does any more, the storage is freed.
class Unit {
 public:
  /// `poison`: instead of freeing, fill with NaN (1 for integers), so that a use out of turn shows.
  Unit(const RankContext& context, std::vector<size_t> members, Unsharded& unsharded, bool poison);

  const Bundle& bundle() const { return bundle_; }
  bool whole() const { return holders_ > 0; }

  void prefetch();  ///< starts the gather, unless it is under way or done
  void acquire();
  void release();

 private:
  void finish_gather();
  void free();

  Bundle bundle_;
  Unsharded& unsharded_;
  const bool poison_;
  Tensor buffer_;
  int holders_ = 0;
  Work gather_{};
  Tensor shard_{}, gathered_{};  ///< of the gather under way
};

}  // namespace assay::parallel
