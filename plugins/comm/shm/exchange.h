// Exchange: one collective as rounds of chunks. In each round every rank copies a chunk into its
// shared slot, then reads the slots of the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "assay/communicator.h"

namespace assay::comm {

inline constexpr int64_t kLine = 64;  ///< bytes of a cache line

/// The slots of one round in rank order; this rank's own entry is null.
using Slots = std::vector<const std::byte*>;

class Exchange {
 public:
  virtual ~Exchange() = default;
  /// Rounds that this rank knows it must publish; all ranks agree once it is_final().
  virtual int64_t rounds() const = 0;
  virtual bool is_final() const { return true; }
  /// Called for rounds 0, 1, ... in order; a round is published before it is consumed.
  virtual void publish(int64_t round, std::byte* slot) = 0;
  virtual void consume(int64_t round, const Slots& slots) = 0;
  /// A rank that sent what this one does not expect, with the reason; -1 if all is well.
  virtual int misfit() const { return -1; }
  virtual std::string misfit_detail() const { return {}; }
};

/// Splits `request` of a group of `ranks` into rounds of at most `slot_bytes`.
std::unique_ptr<Exchange> make_exchange(const Communicator::Request& request, int rank, int ranks,
                                        int64_t slot_bytes);

/// all_to_all, whose rounds depend on the splits of all ranks.
std::unique_ptr<Exchange> make_all_to_all(const Communicator::Request& request, int rank, int ranks,
                                          int64_t slot_bytes);

}  // namespace assay::comm
