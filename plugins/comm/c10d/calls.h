// The calls of a communicator in terms of a c10d backend; shared by comm/gloo and comm/nccl.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <chrono>
#include <cstdint>

#include "assay/communicator.h"

namespace assay::comm {

using C10dWork = c10::intrusive_ptr<c10d::Work>;

/// Starts `request`. What only moves travels as bytes, so that every dtype does; bool is reduced as
/// bytes 0 and 1. Throws Error for a dtype that c10d cannot reduce (int16, 8-bit floats), and
/// whatever the backend throws.
C10dWork start_call(c10d::Backend& backend, const Communicator::Request& request);

/// True if the call moves nothing on any rank, which c10d backends do not like to be asked.
bool is_empty(const Communicator::Request& request);

/// At least one.
std::chrono::milliseconds milliseconds(int64_t nanoseconds);

}  // namespace assay::comm
