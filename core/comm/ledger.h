// Ledger: the counts of one group, and whether the group is still usable.
#pragma once

#include <optional>
#include <vector>

#include "assay/communicator.h"

namespace assay {

class Communicator::Ledger {
 public:
  Ledger(std::string group, int size) : group_(std::move(group)), size_(size) {}

  /// Counts one call and returns its row. `wire_numerator` is wire bytes times the group's size:
  /// 2S(n-1)/n of one call need not be whole, the sum is rounded down once.
  size_t count(Collective op, const std::string& dtype, int64_t payload_bytes,
               int64_t wire_numerator);
  void add_seconds(size_t row, double total_s, double exposed_s);

  std::vector<Traffic> rows() const;
  double exposed_s() const { return exposed_s_; }
  void reset();

  std::optional<PeerFault> fault;  ///< set once; later calls are refused with it

 private:
  struct Row {
    Collective op;
    std::string dtype;
    std::string phase;
    int64_t count = 0;
    int64_t payload_bytes = 0;
    int64_t wire_numerator = 0;
    double total_s = 0;
    double exposed_s = 0;
  };

  std::string group_;
  int size_;
  std::vector<Row> rows_;
  double exposed_s_ = 0;
};

/// Sequence numbers from 1: one series for collectives, one per pair and direction.
class Communicator::Numbering {
 public:
  explicit Numbering(int size) : sent_(size), received_(size) {}
  uint64_t next(Collective op, int peer) {
    if (op == Collective::send) return ++sent_[static_cast<size_t>(peer)];
    if (op == Collective::recv) return ++received_[static_cast<size_t>(peer)];
    return ++collectives_;
  }

 private:
  uint64_t collectives_ = 0;
  std::vector<uint64_t> sent_;
  std::vector<uint64_t> received_;
};

}  // namespace assay
