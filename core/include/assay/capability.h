// The closed vocabulary of capabilities: what a component provides and needs. A new word changes
// the SDK; any other word is refused at registration, with the nearest one.
#pragma once

#include <array>
#include <string_view>

namespace assay {

// clang-format off
inline constexpr std::array<std::string_view, 23> kCapabilities{
    // environment
    "device.cpu", "device.cuda",
    "arch.sm80", "arch.sm89", "arch.sm90", "arch.sm100",  // that or newer
    "cpu.avx2", "cpu.avx512",
    "world.multi", "world.hosts",
    "dtype.bf16", "dtype.float8_e4m3",
    // model and parameters
    "model.blocks", "model.linear", "model.moe", "model.causal",
    "param.whole",  // the optimizer gets whole matrices
    "grad.final",   // the gradient of a parameter is final before the step ends
    // behaviour
    "meta.safe",          // runs on meta tensors
    "shard.elementwise",  // a slice of the update is the update of the slice
    "graph.capturable",   // may be captured and replayed
    "bitwise.identical",  // equal input gives the bits of the reference
    "resume.bitwise",     // a resumed run gives the bits of an uninterrupted one
};
// clang-format on

}  // namespace assay
