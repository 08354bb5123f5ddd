// Error: what assay and its plugins throw for a user's mistake. Bugs use ASSAY_CHECK instead.
#pragma once

#include <stdexcept>
#include <string>

#include "assay/api.h"

namespace assay {

/// A problem that a user can solve. The message says who, the bad value and what is allowed;
/// the hint says what to do next (without "hint:" in front).
class ASSAY_API Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, std::string hint = {});
  ~Error() override;
  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

/// The run broke an invariant (a non-finite loss, say): its state becomes `invalid`.
class ASSAY_API InvalidRun : public Error {
 public:
  using Error::Error;
  ~InvalidRun() override;
};

/// Not the recipe's fault (a lost peer, a full disk): the run's state becomes `infra`.
class ASSAY_API InfrastructureError : public Error {
 public:
  using Error::Error;
  ~InfrastructureError() override;
};

[[noreturn]] ASSAY_API void check_failed(const char* file, int line, const std::string& message);

}  // namespace assay

/// Throws std::logic_error "bug in assay" when a promise between assay's own parts is broken.
#define ASSAY_CHECK(condition, message)                                     \
  do {                                                                      \
    if (!(condition)) ::assay::check_failed(__FILE__, __LINE__, (message)); \
  } while (false)
