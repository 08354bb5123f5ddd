// Swaps the two streams around plugin code.
#include "core/worker/document.h"

#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace assay::worker {
namespace {

/// Standard output is standard error while this lives.
class QuietOutput {
 public:
  QuietOutput() : saved_(::dup(STDOUT_FILENO)) { ::dup2(STDERR_FILENO, STDOUT_FILENO); }
  QuietOutput(const QuietOutput&) = delete;
  QuietOutput& operator=(const QuietOutput&) = delete;
  ~QuietOutput() {
    std::fflush(stdout);
    ::dup2(saved_, STDOUT_FILENO);
    ::close(saved_);
  }

 private:
  const int saved_;
};

}  // namespace

void print_document(const std::function<nlohmann::json()>& make) {
  std::string text;
  {
    const QuietOutput quiet;
    text = make().dump() + "\n";
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace assay::worker
