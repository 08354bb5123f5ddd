// Collectives: publish while slots are free, consume when every rank has published.
#include "channel.h"

#include <algorithm>

namespace assay::comm {

Channel::Channel(std::unique_ptr<Peers> peers, int own, const Layout& layout)
    : peers_(std::move(peers)),
      own_(own),
      layout_(layout),
      outbox_(static_cast<size_t>(layout.ranks)),
      inbox_(static_cast<size_t>(layout.ranks)) {}

std::shared_ptr<Job> Channel::start(const Communicator::Request& request) {
  auto job = std::make_shared<Job>();
  job->signature = signature_of(request);
  job->exchange = make_exchange(request, own_, layout_.ranks, layout_.slot_bytes);
  (*peers_)[own_].progress().last_call.store(request.sequence << 8 | job->signature.op,
                                             std::memory_order_relaxed);
  jobs_.push_back(job);
  progress();
  return job;
}

bool Channel::progress() {
  bool moved = false;
  for (bool again = !trouble_; again;) {
    again = publish();
    again |= consume();
    moved |= again;
  }
  for (int peer = 0; peer < layout_.ranks && open_mail_ > 0 && !trouble_; ++peer) {
    moved |= send(peer);
    moved |= receive(peer);
  }
  return moved;
}

/// The first rank that still reads the slot of the next chunk; -1 if the slot is free.
int Channel::reader() const {
  const auto slots = static_cast<uint64_t>(layout_.slots);
  if (published_ < slots) return -1;
  const uint64_t needed = published_ - slots + 1;
  for (int rank = 0; rank < layout_.ranks; ++rank) {
    const auto& done = (*peers_)[rank].progress().done;
    if (rank != own_ && done.load(std::memory_order_acquire) < needed) return rank;
  }
  return -1;
}

bool Channel::publish() {
  while (publishing_ < jobs_.size() && jobs_[publishing_]->exchange->is_final() &&
         jobs_[publishing_]->published == jobs_[publishing_]->exchange->rounds()) {
    ++publishing_;
  }
  if (publishing_ == jobs_.size() || reader() >= 0) return false;
  Job& job = *jobs_[publishing_];
  if (job.published == job.exchange->rounds()) return false;  // learns more from round 0
  const Segment& own = (*peers_)[own_];
  job.exchange->publish(job.published++, own.slot(published_));
  own.signature(published_) = job.signature;
  own.progress().published.store(++published_, std::memory_order_release);
  peers_->ring_all();
  return true;
}

/// The first rank that has not published `chunk`; -1 if all have.
int Channel::laggard(uint64_t chunk) const {
  for (int rank = 0; rank < layout_.ranks; ++rank) {
    const auto& published = (*peers_)[rank].progress().published;
    if (published.load(std::memory_order_acquire) <= chunk) return rank;
  }
  return -1;
}

bool Channel::consume() {
  if (jobs_.empty() || laggard(consumed_) >= 0) return false;
  Job& job = *jobs_.front();
  if ((trouble_ = disagreement(job.signature))) return false;
  Slots slots(static_cast<size_t>(layout_.ranks), nullptr);
  for (int rank = 0; rank < layout_.ranks; ++rank) {
    if (rank != own_) slots[static_cast<size_t>(rank)] = (*peers_)[rank].slot(consumed_);
  }
  job.exchange->consume(job.consumed++, slots);
  (*peers_)[own_].progress().done.store(++consumed_, std::memory_order_release);
  peers_->ring_all();
  if (const int misfit = job.exchange->misfit(); misfit >= 0) {
    job.failed = true;
    trouble_ =
        Trouble{PeerFault::Cause::disagrees, misfit, job.signature, job.exchange->misfit_detail()};
  } else if (job.finished()) {
    jobs_.pop_front();
    if (publishing_ > 0) --publishing_;
  }
  return true;
}

/// Blames the rank whose call the fewest ranks made; between two ranks, the other one.
std::optional<Trouble> Channel::disagreement(const Signature& mine) const {
  bool agreed = true;
  for (int rank = 0; rank < layout_.ranks; ++rank) {
    agreed &= rank == own_ || (*peers_)[rank].signature(consumed_) == mine;
  }
  if (agreed) return std::nullopt;
  std::vector<Signature> calls;
  for (int rank = 0; rank < layout_.ranks; ++rank) {
    // The own slot may hold a later chunk already: only peers keep it.
    calls.push_back(rank == own_ ? mine : (*peers_)[rank].signature(consumed_));
  }
  const auto votes = [&](int rank) {
    return std::count(calls.begin(), calls.end(), calls[static_cast<size_t>(rank)]);
  };
  int odd = own_ == 0 ? 1 : 0;
  for (int rank = 0; rank < layout_.ranks; ++rank) {
    if (rank != own_ && votes(rank) < votes(odd)) odd = rank;
  }
  const auto text = [&](int rank) { return describe(calls[static_cast<size_t>(rank)]); };
  if (votes(own_) < votes(odd)) {
    const int other = own_ == 0 ? 1 : 0;
    return Trouble{PeerFault::Cause::disagrees, own_, mine,
                   "this rank calls " + text(own_) + ", rank " + std::to_string(other) +
                       " of the group " + text(other)};
  }
  return Trouble{PeerFault::Cause::disagrees, odd, mine,
                 "it calls " + text(odd) + ", this rank " + text(own_)};
}

std::string Channel::last_call(int rank) const {
  const uint64_t packed = (*peers_)[rank].progress().last_call.load(std::memory_order_relaxed);
  if (packed == 0) return "it has made no call in this group";
  return std::string("its last call is ") + name_of(static_cast<Collective>(packed & 0xff)) + " #" +
         std::to_string(packed >> 8);
}

Trouble Channel::waits_for(const Job& job) const {
  int rank = laggard(consumed_);
  if (rank == own_) rank = reader();
  return {PeerFault::Cause::stalled, rank, job.signature, rank < 0 ? "" : last_call(rank)};
}

/// A rank that has not published what this one needs, or not consumed what this one has.
bool Channel::is_behind(int rank) const {
  const Progress& theirs = (*peers_)[rank].progress();
  return theirs.published.load() <= consumed_ || theirs.done.load() < consumed_;
}

void Channel::look_for_the_dead() {
  for (int rank = 0; rank < layout_.ranks && !trouble_; ++rank) {
    if (rank == own_) continue;
    const auto index = static_cast<size_t>(rank);
    const Signature* call = nullptr;
    if (!jobs_.empty() && is_behind(rank)) call = &jobs_.front()->signature;
    if (!outbox_[index].empty()) call = &outbox_[index].front()->signature;
    if (!inbox_[index].empty()) call = &inbox_[index].front()->signature;
    if (call != nullptr && !peers_->alive(rank)) {
      trouble_ = Trouble{PeerFault::Cause::dead, rank, *call, last_call(rank)};
    }
  }
}

}  // namespace assay::comm
