// Roster: a line per rank in the rendezvous folder, so that a failed call can name its culprit.
#pragma once

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "assay/communicator.h"
#include "assay/process_id.h"

namespace assay::comm {

/// One mapped file of `ranks` lines, made by whoever comes first.
class Roster {
 public:
  Roster(const std::filesystem::path& file, int ranks, int own);
  ~Roster();
  Roster(const Roster&) = delete;
  Roster& operator=(const Roster&) = delete;

  /// Before every collective: what this rank is about to do.
  void announce(uint64_t sequence, Collective op);

  struct Suspect {
    PeerFault::Cause cause;
    int index;
    std::string detail;
  };
  /// The rank that keeps the others from finishing call `sequence`, if one stands out: dead, at
  /// another operation, or behind.
  std::optional<Suspect> suspect(uint64_t sequence, Collective op) const;

 private:
  struct alignas(64) Line {
    std::atomic<int64_t> pid;
    std::atomic<uint64_t> start;
    std::atomic<uint64_t> call;  ///< sequence << 8 | op
  };

  Line* lines_ = nullptr;
  const int ranks_;
  const int own_;
};

}  // namespace assay::comm
