// Channel: the calls of one group that are under way, as a state machine that never blocks.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exchange.h"
#include "peers.h"

namespace assay::comm {

/// Why a channel cannot go on.
struct Trouble {
  PeerFault::Cause cause;
  int rank;        ///< place in the group
  Signature call;  ///< where it happened
  std::string detail;
};

/// A collective under way.
struct Job {
  Signature signature{};
  std::unique_ptr<Exchange> exchange{};
  int64_t published = 0;  ///< rounds
  int64_t consumed = 0;
  bool failed = false;

  bool finished() const {
    return !failed && exchange->is_final() && consumed == exchange->rounds();
  }
};

/// A message under way, to or from one peer.
struct Mail {
  Signature signature{};
  at::Tensor tensor{};
  int64_t moved = 0;  ///< bytes
  bool finished() const { return done; }
  bool done = false;
};

class Channel {
 public:
  Channel(std::unique_ptr<Peers> peers, int own, const Layout& layout);

  std::shared_ptr<Job> start(const Communicator::Request& request);
  std::shared_ptr<Mail> start_mail(const Communicator::Request& request);

  /// Does all that can be done now. True if anything moved.
  bool progress();
  bool idle() const { return jobs_.empty() && open_mail_ == 0; }

  /// Set once; nothing moves afterwards.
  const std::optional<Trouble>& trouble() const { return trouble_; }
  /// Sets trouble() if a call waits for a dead peer. Reads /proc: not for hot loops.
  void look_for_the_dead();
  /// The first peer whose part is missing, with what that peer does instead.
  Trouble waits_for(const Job& job) const;
  Trouble waits_for(const Mail& mail, int peer) const;

 private:
  bool publish();
  bool consume();
  std::optional<Trouble> disagreement(const Signature& mine) const;
  int laggard(uint64_t chunk) const;
  bool is_behind(int rank) const;
  int reader() const;
  std::string last_call(int rank) const;
  bool send(int peer);
  bool receive(int peer);
  void finish_mail(std::deque<std::shared_ptr<Mail>>& queue);

  const std::unique_ptr<Peers> peers_;
  const int own_;
  const Layout layout_;
  std::deque<std::shared_ptr<Job>> jobs_;
  size_t publishing_ = 0;   ///< index in jobs_ of the one that publishes next
  uint64_t published_ = 0;  ///< chunks of this rank over the life of the group
  uint64_t consumed_ = 0;
  std::vector<std::deque<std::shared_ptr<Mail>>> outbox_, inbox_;  ///< per peer
  size_t open_mail_ = 0;
  std::optional<Trouble> trouble_;
};

}  // namespace assay::comm
