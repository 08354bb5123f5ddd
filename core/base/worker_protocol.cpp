// JSON messages over a local socket, with descriptors by SCM_RIGHTS.
#include "core/base/worker_protocol.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "assay/error.h"

namespace assay {
namespace {

constexpr size_t kMaxBytes = 64 * 1024;
constexpr size_t kMaxFds = 8;

/// Storage for one SCM_RIGHTS block, aligned as the kernel wants it.
union Control {
  char bytes[CMSG_SPACE(kMaxFds * sizeof(int))];
  cmsghdr align;
};

std::vector<UniqueFd> take_fds(msghdr& header) {
  std::vector<UniqueFd> fds;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::vector<int> raw(count);
    std::memcpy(raw.data(), CMSG_DATA(c), count * sizeof(int));
    for (int fd : raw) fds.emplace_back(fd);
  }
  return fds;
}

}  // namespace

std::pair<UniqueFd, UniqueFd> message_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw InfrastructureError(std::string("cannot make a socket pair: ") + std::strerror(errno));
  }
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

bool send_message(int socket, const nlohmann::json& body, std::span<const int> fds) {
  const std::string text = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  ASSAY_CHECK(text.size() <= kMaxBytes && fds.size() <= kMaxFds, "message too large: " + text);
  iovec part{const_cast<char*>(text.data()), text.size()};
  Control control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control.bytes;
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(c), fds.data(), fds.size_bytes());
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0;
}

std::optional<Message> receive_message(int socket, bool wait) {
  std::string text(kMaxBytes, '\0');
  iovec part{text.data(), text.size()};
  Control control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes;
  header.msg_controllen = sizeof control.bytes;
  const ssize_t n = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return std::nullopt;
  Message message;
  if (n <= 0) {
    message.end = true;
    return message;
  }
  message.fds = take_fds(header);
  message.body = nlohmann::json::parse(text.begin(), text.begin() + n, nullptr, false);
  return message;
}

}  // namespace assay
