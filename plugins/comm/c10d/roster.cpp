// A shared mapping of one small file; its folder is private and removed by the host.
#include "roster.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace assay::comm {

Roster::Roster(const std::filesystem::path& file, int ranks, int own) : ranks_(ranks), own_(own) {
  const size_t bytes = sizeof(Line) * static_cast<size_t>(ranks);
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void* data = MAP_FAILED;
  if (fd >= 0 && ftruncate(fd, static_cast<off_t>(bytes)) == 0) {
    data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  const int reason = errno;
  if (fd >= 0) close(fd);
  if (data == MAP_FAILED) {
    throw InfrastructureError("cannot map " + file.string() + ": " + std::strerror(reason));
  }
  lines_ = static_cast<Line*>(data);
  const ProcessId self = ProcessId::self();
  lines_[own].start = self.start;
  lines_[own].pid = self.pid;
}

Roster::~Roster() { munmap(lines_, sizeof(Line) * static_cast<size_t>(ranks_)); }

void Roster::announce(uint64_t sequence, Collective op) {
  lines_[own_].call.store(sequence << 8 | static_cast<uint64_t>(op), std::memory_order_relaxed);
}

std::optional<Roster::Suspect> Roster::suspect(uint64_t sequence, Collective op) const {
  std::optional<Suspect> behind;
  for (int index = 0; index < ranks_; ++index) {
    if (index == own_) continue;
    const Line& line = lines_[index];
    const ProcessId process{.pid = static_cast<pid_t>(line.pid.load()), .start = line.start.load()};
    const uint64_t call = line.call.load();
    const auto theirs = static_cast<Collective>(call & 0xff);
    const std::string detail = call == 0 ? "it has made no call in this group"
                                         : std::string("its last call is ") + name_of(theirs) +
                                               " #" + std::to_string(call >> 8);
    if (process.pid != 0 && !process.alive()) return Suspect{PeerFault::Cause::dead, index, detail};
    if (call >> 8 == sequence && theirs != op) {
      return Suspect{PeerFault::Cause::disagrees, index, detail};
    }
    if (call >> 8 < sequence && !behind) behind = Suspect{PeerFault::Cause::stalled, index, detail};
  }
  return behind;
}

}  // namespace assay::comm
