// Board: where the rank threads of one group post the inputs of their calls.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "assay/communicator.h"

namespace assay::comm {

/// What one rank brought to a call.
struct Posted {
  Communicator::Request request{};  ///< without `out`
  at::Tensor input{};               ///< a copy
};

class Board {
 public:
  explicit Board(int ranks) : ranks_(ranks) {}

  void post(int rank, Posted posted);
  void post_message(int source, Posted posted);

  /// All inputs of a collective in rank order, or none if one is missing after `wait_ns`. Every
  /// rank takes a collective once; the last one clears it.
  std::optional<std::vector<Posted>> take(uint64_t sequence, int64_t wait_ns);
  std::optional<Posted> take_message(int source, int destination, uint64_t sequence,
                                     int64_t wait_ns);

  /// The first rank that has not posted this collective; -1 if none.
  int missing(uint64_t sequence) const;

 private:
  struct Round {
    std::vector<std::optional<Posted>> posted;
    int present = 0;
    int taken = 0;
  };
  using MessageKey = std::tuple<int, int, uint64_t>;  // source, destination, sequence

  Round& round(uint64_t sequence);

  const int ranks_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, Round> rounds_;
  std::map<MessageKey, Posted> messages_;
};

/// The board of (rendezvous, group), made by the first rank that asks.
std::shared_ptr<Board> board_of(const GroupSpec& spec);

}  // namespace assay::comm
