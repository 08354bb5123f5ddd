// Kind: the eight kinds of component that a plugin can bring.
#pragma once

namespace assay {

enum class Kind { model, parallel, memory, precision, compile, optim, data, comm };

}  // namespace assay
