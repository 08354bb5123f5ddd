// Messages: one ring of frames per ordered pair of ranks, in the sender's memory.
#include <algorithm>
#include <cstring>

#include "channel.h"

namespace assay::comm {
namespace {

/// Goes before each piece of a message; keeps frames aligned to a line.
struct alignas(64) Frame {
  Signature signature;
  int64_t bytes;
};
static_assert(sizeof(Frame) == kLine);

int64_t padded(int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

/// A run of `bytes` at position `at` of a ring, in at most two pieces.
template <class Copy>
void pieces(uint64_t at, int64_t bytes, int64_t ring, const Copy& copy) {
  const int64_t begin = static_cast<int64_t>(at % static_cast<uint64_t>(ring));
  const int64_t first = std::min(bytes, ring - begin);
  if (first > 0) copy(begin, int64_t{0}, static_cast<size_t>(first));
  if (bytes > first) copy(int64_t{0}, first, static_cast<size_t>(bytes - first));
}

}  // namespace

std::shared_ptr<Mail> Channel::start_mail(const Communicator::Request& request) {
  auto mail = std::make_shared<Mail>();
  mail->signature = signature_of(request);
  const bool sends = request.op == Collective::send;
  mail->tensor = sends ? request.in : request.out;
  (sends ? outbox_ : inbox_)[static_cast<size_t>(request.peer)].push_back(mail);
  ++open_mail_;
  progress();
  return mail;
}

void Channel::finish_mail(std::deque<std::shared_ptr<Mail>>& queue) {
  queue.front()->done = true;
  queue.pop_front();
  --open_mail_;
}

bool Channel::send(int peer) {
  auto& queue = outbox_[static_cast<size_t>(peer)];
  bool moved = false;
  std::byte* ring = (*peers_)[own_].mailbox(peer);
  auto& sent = (*peers_)[own_].mail(peer).sent;
  while (!queue.empty()) {
    Mail& mail = *queue.front();
    const uint64_t at = sent.load(std::memory_order_relaxed);
    const uint64_t taken = (*peers_)[peer].mail(own_).taken.load(std::memory_order_acquire);
    const int64_t space = layout_.mailbox_bytes - static_cast<int64_t>(at - taken) - kLine;
    const int64_t left = static_cast<int64_t>(mail.tensor.nbytes()) - mail.moved;
    const int64_t bytes = std::min(left, space / kLine * kLine);
    if (space < 0 || (bytes <= 0 && left > 0)) break;
    Frame frame{.signature = mail.signature, .bytes = bytes};
    frame.signature.more = bytes < left;
    std::memcpy(ring + at % static_cast<uint64_t>(layout_.mailbox_bytes), &frame, sizeof(frame));
    const auto* data = static_cast<const std::byte*>(mail.tensor.const_data_ptr()) + mail.moved;
    pieces(at + kLine, bytes, layout_.mailbox_bytes, [&](int64_t to, int64_t from, size_t size) {
      std::memcpy(ring + to, data + from, size);
    });
    sent.store(at + static_cast<uint64_t>(kLine + padded(bytes)), std::memory_order_release);
    peers_->ring(peer);
    mail.moved += bytes;
    moved = true;
    if (bytes == left) finish_mail(queue);
  }
  return moved;
}

bool Channel::receive(int peer) {
  auto& queue = inbox_[static_cast<size_t>(peer)];
  bool moved = false;
  const std::byte* ring = (*peers_)[peer].mailbox(own_);
  auto& taken = (*peers_)[own_].mail(peer).taken;
  while (!queue.empty() && !trouble_) {
    Mail& mail = *queue.front();
    const uint64_t at = taken.load(std::memory_order_relaxed);
    if ((*peers_)[peer].mail(own_).sent.load(std::memory_order_acquire) == at) break;
    Frame frame;
    std::memcpy(&frame, ring + at % static_cast<uint64_t>(layout_.mailbox_bytes), sizeof(frame));
    Signature expected = mail.signature;
    expected.more = frame.signature.more;
    if (frame.signature != expected) {
      trouble_ = Trouble{PeerFault::Cause::disagrees, peer, mail.signature,
                         "it sends " + describe(frame.signature) + ", this rank expects " +
                             describe(mail.signature)};
      break;
    }
    auto* data = static_cast<std::byte*>(mail.tensor.mutable_data_ptr()) + mail.moved;
    pieces(
        at + kLine, frame.bytes, layout_.mailbox_bytes,
        [&](int64_t from, int64_t to, size_t size) { std::memcpy(data + to, ring + from, size); });
    taken.store(at + static_cast<uint64_t>(kLine + padded(frame.bytes)), std::memory_order_release);
    peers_->ring(peer);
    mail.moved += frame.bytes;
    moved = true;
    if (frame.signature.more == 0) finish_mail(queue);
  }
  return moved;
}

Trouble Channel::waits_for(const Mail& mail, int peer) const {
  return {PeerFault::Cause::stalled, peer, mail.signature, last_call(peer)};
}

}  // namespace assay::comm
