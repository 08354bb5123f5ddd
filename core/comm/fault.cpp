// What a rank says when a peer is dead, stalls or calls something else.
#include "assay/communicator.h"

namespace assay {
namespace {

std::string describe(const PeerFault& fault) {
  const std::string call =
      fault.collective + " #" + std::to_string(fault.sequence) + " of group '" + fault.group + "'";
  const std::string rank = fault.rank < 0 ? "a rank" : "rank " + std::to_string(fault.rank);
  const std::string detail = fault.detail.empty() ? "" : ": " + fault.detail;
  switch (fault.cause) {
    case PeerFault::Cause::dead:
      return rank + " died during " + call + detail;
    case PeerFault::Cause::stalled:
      return rank + " did not take part in " + call + " in time" + detail;
    case PeerFault::Cause::disagrees:
      return rank + " disagrees with the others at " + call + detail;
  }
  return call;
}

std::string advice(const PeerFault& fault) {
  if (fault.cause == PeerFault::Cause::stalled) {
    return "look at the last lines of that rank's log, or raise run.step_timeout";
  }
  return "every rank must make the same calls in the same order with equal sizes and dtypes";
}

}  // namespace

PeerError::PeerError(PeerFault fault)
    : Error(describe(fault), advice(fault)), fault_(std::move(fault)) {}
PeerError::~PeerError() = default;

LostPeer::LostPeer(PeerFault fault)
    : InfrastructureError(describe(fault), "the log of that rank says why it ended"),
      fault_(std::move(fault)) {}
LostPeer::~LostPeer() = default;

void throw_fault(const PeerFault& fault) {
  if (fault.cause == PeerFault::Cause::dead) throw LostPeer(fault);
  throw PeerError(fault);
}

}  // namespace assay
