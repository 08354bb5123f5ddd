// Exceptions of a rank by kind. LibTorch's allocator errors are known by their words, because the
// CPU allocator throws a plain c10::Error.
#include "core/worker/guard.h"

#include <array>
#include <iostream>
#include <new>
#include <string_view>

#include "assay/error.h"
#include "core/base/worker_protocol.h"

namespace assay::worker {
namespace {

constexpr std::array<std::string_view, 3> kOutOfMemoryWords = {
    "can't allocate memory", "not enough memory", "out of memory"};

bool is_out_of_memory(std::string_view what) {
  for (std::string_view words : kOutOfMemoryWords) {
    if (what.find(words) != std::string_view::npos) return true;
  }
  return false;
}

int report(EventPipe& events, int code, const std::string& message, const std::string& hint = {}) {
  std::cerr << "error: " << message << '\n';
  if (!hint.empty()) std::cerr << "  hint: " << hint << '\n';
  std::cerr.flush();
  events.error({}, message);
  return code;
}

}  // namespace

int guarded(EventPipe& events, const std::function<void()>& body) {
  try {
    body();
    return kExitOk;
  } catch (const InvalidRun& e) {
    return report(events, kExitInvalid, e.what(), e.hint());
  } catch (const InfrastructureError& e) {
    return report(events, kExitInfrastructure, e.what(), e.hint());
  } catch (const Error& e) {
    return report(events, kExitFail, e.what(), e.hint());
  } catch (const std::bad_alloc&) {
    return report(events, kExitOutOfMemory, "out of memory: an allocation failed");
  } catch (const OutOfMemory& e) {
    return report(events, kExitOutOfMemory, e.what());
  } catch (const std::exception& e) {
    return report(events, is_out_of_memory(e.what()) ? kExitOutOfMemory : kExitFail, e.what());
  } catch (...) {
    return report(events, kExitFail, "something was thrown that is no std::exception");
  }
}

const char* outcome_name(int exit_code) {
  switch (exit_code) {
    case kExitOk:
      return "ok";
    case kExitOutOfMemory:
      return "oom";
    case kExitInvalid:
      return "invalid";
    case kExitInfrastructure:
      return "infra";
    default:
      return "fail";
  }
}

}  // namespace assay::worker
