// Posting and taking under one lock; waiting on one condition.
#include "board.h"

#include <chrono>

namespace assay::comm {

Board::Round& Board::round(uint64_t sequence) {
  Round& round = rounds_[sequence];
  if (round.posted.empty()) round.posted.resize(static_cast<size_t>(ranks_));
  return round;
}

void Board::post(int rank, Posted posted) {
  const std::lock_guard lock(mutex_);
  Round& entry = round(posted.request.sequence);
  entry.posted[static_cast<size_t>(rank)] = std::move(posted);
  ++entry.present;
  changed_.notify_all();
}

void Board::post_message(int source, Posted posted) {
  const std::lock_guard lock(mutex_);
  const MessageKey key{source, posted.request.peer, posted.request.sequence};
  messages_[key] = std::move(posted);
  changed_.notify_all();
}

std::optional<std::vector<Posted>> Board::take(uint64_t sequence, int64_t wait_ns) {
  std::unique_lock lock(mutex_);
  const auto complete = [&] { return round(sequence).present == ranks_; };
  if (!changed_.wait_for(lock, std::chrono::nanoseconds(wait_ns), complete)) return std::nullopt;
  Round& entry = round(sequence);
  std::vector<Posted> all;
  for (const auto& posted : entry.posted) all.push_back(*posted);
  if (++entry.taken == ranks_) rounds_.erase(sequence);
  return all;
}

std::optional<Posted> Board::take_message(int source, int destination, uint64_t sequence,
                                          int64_t wait_ns) {
  std::unique_lock lock(mutex_);
  const MessageKey key{source, destination, sequence};
  const auto arrived = [&] { return messages_.contains(key); };
  if (!changed_.wait_for(lock, std::chrono::nanoseconds(wait_ns), arrived)) return std::nullopt;
  return std::move(messages_.extract(key).mapped());
}

int Board::missing(uint64_t sequence) const {
  const std::lock_guard lock(mutex_);
  const auto found = rounds_.find(sequence);
  if (found == rounds_.end()) return -1;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!found->second.posted[static_cast<size_t>(rank)]) return rank;
  }
  return -1;
}

std::shared_ptr<Board> board_of(const GroupSpec& spec) {
  static auto& mutex = *new std::mutex;
  static auto& boards = *new std::map<std::string, std::weak_ptr<Board>>;
  const std::lock_guard lock(mutex);
  std::weak_ptr<Board>& entry = boards[spec.rendezvous.string() + "/" + spec.key()];
  std::shared_ptr<Board> board = entry.lock();
  if (!board) entry = board = std::make_shared<Board>(spec.size());
  return board;
}

}  // namespace assay::comm
