// What the supervisor and its workers agree on: exit codes, and messages with file descriptors.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/unique_fd.h"

namespace assay {

/// How a worker says what became of its rank. Everything else (other codes, signals) is a failure.
enum WorkerExit : int {
  kExitOk = 0,
  kExitFail = 1,
  kExitUsage = 2,
  kExitOutOfMemory = 12,
  kExitInvalid = 13,
  kExitInfrastructure = 14,
};

/// One JSON document and the descriptors that came with it.
struct Message {
  nlohmann::json body{};
  std::vector<UniqueFd> fds{};
  bool end = false;  ///< the other side is gone; body is null
};

/// Both ends of a close-on-exec SOCK_SEQPACKET pair; throws InfrastructureError.
std::pair<UniqueFd, UniqueFd> message_pair();

/// False when the other side is gone. At most 64 KiB of JSON and 8 descriptors.
bool send_message(int socket, const nlohmann::json& body, std::span<const int> fds = {});

/// Nothing when no message waits (`wait` false) or the call was interrupted.
std::optional<Message> receive_message(int socket, bool wait);

}  // namespace assay
