// Kind: the eight kinds of component that a plugin can bring.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "assay/api.h"

namespace assay {

enum class Kind { model, parallel, memory, precision, compile, optim, data, comm };

inline constexpr std::array<Kind, 8> kKinds{Kind::model,     Kind::parallel, Kind::memory,
                                            Kind::precision, Kind::compile,  Kind::optim,
                                            Kind::data,      Kind::comm};

ASSAY_API const char* name_of(Kind kind);  ///< "optim"
ASSAY_API std::optional<Kind> kind_of(std::string_view name);

}  // namespace assay
