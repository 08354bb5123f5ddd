// PhaseScope: the name that the calls of a thread are counted under.
#include "assay/communicator.h"

namespace assay {
namespace {

std::string& phase_of_this_thread() {
  thread_local std::string phase = "other";
  return phase;
}

}  // namespace

PhaseScope::PhaseScope(std::string_view phase) : outer_(phase_of_this_thread()) {
  phase_of_this_thread() = phase;
}

PhaseScope::~PhaseScope() { phase_of_this_thread() = outer_; }

const std::string& PhaseScope::current() { return phase_of_this_thread(); }

}  // namespace assay
