// Ranks of a group for the comm suite: forked processes, or threads for backends that live in one.
#pragma once

#include <functional>
#include <string>

#include "assay/communicator.h"
#include "core/conformance/subject.h"

namespace assay::conformance {

/// Connects `size` ranks and runs `body` on each; gives the first complaint, empty if there was
/// none. A body complains by throwing.
std::string on_ranks(const Subject& subject, int size,
                     const std::function<void(Communicator&)>& body,
                     int64_t timeout_ns = 60'000'000'000);

/// As above with two overlapping groups, "first" and "second", of all ranks.
std::string on_two_groups(const Subject& subject, int size,
                          const std::function<void(Communicator&, Communicator&)>& body);

}  // namespace assay::conformance
