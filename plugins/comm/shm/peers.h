// Peers: the segments and doorbells of one group, found through the rendezvous folder.
#pragma once

#include <vector>

#include "assay/process_id.h"
#include "doorbell.h"
#include "segment.h"

namespace assay::comm {

/// Everything that one rank maps of its group.
class Peers {
 public:
  /// Publishes this rank's record in `spec.rendezvous` and waits for the others'. `generation`
  /// tells apart groups of one key that a process makes one after the other. Throws PeerError with
  /// the first missing rank when spec.timeout_ns is over.
  Peers(const GroupSpec& spec, const Layout& layout, const SharedMemory& doorbell,
        uint64_t generation);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  int size() const { return static_cast<int>(segments_.size()); }
  const Segment& operator[](int rank) const { return segments_[static_cast<size_t>(rank)]; }
  void ring(int rank) const;
  void ring_all() const;  ///< but this one
  bool alive(int rank) const { return processes_[static_cast<size_t>(rank)].alive(); }

 private:
  void attach(const GroupSpec& spec, const Layout& layout, int rank);
  std::filesystem::path record(int rank) const;

  const std::filesystem::path folder_;
  const std::string prefix_;
  const int own_;
  std::vector<Segment> segments_;
  std::vector<SharedMemory> bells_;
  std::vector<ProcessId> processes_;
};

}  // namespace assay::comm
