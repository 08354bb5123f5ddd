// Rendezvous: one small file per rank says where its shared memory is; a missing one is waited for.
#include "peers.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

namespace assay::comm {
namespace {

constexpr auto kPoll = std::chrono::microseconds(200);

/// What a rank tells the others: its process, its two memories, and the layout it uses.
struct Record {
  ProcessId process;
  int segment_fd = -1;
  int doorbell_fd = -1;
  std::string layout;
};

std::string print(const Layout& layout) {
  return std::to_string(layout.ranks) + "/" + std::to_string(layout.slots) + "/" +
         std::to_string(layout.slot_bytes) + "/" + std::to_string(layout.mailbox_bytes);
}

bool read(const std::filesystem::path& file, Record& record) {
  std::ifstream stream(file);
  stream >> record.process.pid >> record.process.start >> record.segment_fd >> record.doorbell_fd >>
      record.layout;
  return static_cast<bool>(stream);
}

/// Private to the user, and seen by peers only when it is whole.
void write(const std::filesystem::path& file, const std::string& text) {
  const std::filesystem::path draft = file.string() + ".tmp";
  const int fd = open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool written =
      fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int reason = errno;
  if (fd >= 0) close(fd);
  if (!written || rename(draft.c_str(), file.c_str()) != 0) {
    throw InfrastructureError("comm/shm: cannot write " + draft.string() + ": " +
                              std::strerror(written ? errno : reason));
  }
}

}  // namespace

std::filesystem::path Peers::record(int rank) const {
  return folder_ / (prefix_ + std::to_string(rank) + ".shm");
}

Peers::Peers(const GroupSpec& spec, const Layout& layout, const SharedMemory& doorbell,
             uint64_t generation)
    : folder_(spec.rendezvous),
      prefix_(spec.key() + "." + std::to_string(generation) + "."),
      own_(spec.index) {
  SharedMemory own = Segment::make(layout);
  std::ostringstream text;
  const ProcessId self = ProcessId::self();
  text << self.pid << ' ' << self.start << ' ' << own.fd() << ' ' << doorbell.fd() << ' '
       << print(layout) << '\n';
  write(record(own_), text.str());
  for (int rank = 0; rank < layout.ranks; ++rank) {
    if (rank == own_) {
      segments_.emplace_back(std::move(own), layout);
      bells_.emplace_back();
      processes_.push_back(self);
    } else {
      attach(spec, layout, rank);
    }
  }
}

Peers::~Peers() {
  std::error_code ignored;
  std::filesystem::remove(record(own_), ignored);
}

void Peers::attach(const GroupSpec& spec, const Layout& layout, int rank) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::nanoseconds(spec.timeout_ns);
  Record found;
  const auto fault = [&](PeerFault::Cause cause, const std::string& detail) {
    throw_fault({.cause = cause,
                 .group = spec.name,
                 .rank = spec.ranks[static_cast<size_t>(rank)],
                 .collective = "connect",
                 .detail = detail});
  };
  while (!read(record(rank), found)) {
    if (std::chrono::steady_clock::now() > deadline) {
      fault(PeerFault::Cause::stalled, "it never came to " + spec.rendezvous.string());
    }
    std::this_thread::sleep_for(kPoll);
  }
  if (found.layout != print(layout)) {
    fault(PeerFault::Cause::disagrees,
          "its options give " + found.layout + ", here they give " + print(layout));
  }
  if (!found.process.alive()) fault(PeerFault::Cause::dead, "");
  segments_.emplace_back(
      SharedMemory::attach(found.process.pid, found.segment_fd, layout.total_bytes()), layout);
  bells_.push_back(SharedMemory::attach(found.process.pid, found.doorbell_fd, sizeof(Doorbell)));
  processes_.push_back(found.process);
}

void Peers::ring(int rank) const {
  reinterpret_cast<Doorbell*>(bells_[static_cast<size_t>(rank)].data())->ring();
}

void Peers::ring_all() const {
  for (int rank = 0; rank < size(); ++rank) {
    if (rank != own_) ring(rank);
  }
}

}  // namespace assay::comm
