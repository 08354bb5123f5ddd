// Names of the kinds.
#include "assay/kind.h"

namespace assay {

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::model:
      return "model";
    case Kind::parallel:
      return "parallel";
    case Kind::memory:
      return "memory";
    case Kind::precision:
      return "precision";
    case Kind::compile:
      return "compile";
    case Kind::optim:
      return "optim";
    case Kind::data:
      return "data";
    case Kind::comm:
      return "comm";
  }
  return "";
}

std::optional<Kind> kind_of(std::string_view name) {
  for (const Kind kind : kKinds) {
    if (name == name_of(kind)) return kind;
  }
  return std::nullopt;
}

}  // namespace assay
