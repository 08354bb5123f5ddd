// The exception types of assay/error.h; their key functions live here, so that one type is
// thrown and caught on both sides of the plugin boundary.
#include "assay/error.h"

#include <utility>

namespace assay {

Error::Error(const std::string& message, std::string hint)
    : std::runtime_error(message), hint_(std::move(hint)) {}
Error::~Error() = default;
InvalidRun::~InvalidRun() = default;
InfrastructureError::~InfrastructureError() = default;

void check_failed(const char* file, int line, const std::string& message) {
  throw std::logic_error("this is a bug in assay: " + message + " (" + file + ":" +
                         std::to_string(line) + ")");
}

}  // namespace assay
