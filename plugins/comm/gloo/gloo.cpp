// The gloo communicator: bytes travel as uint8, reductions in their dtype, errors name a rank.
#include "gloo.h"

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "../c10d/calls.h"
#include "../c10d/roster.h"
#include "assay/plugin.h"

namespace assay::comm {
namespace {

using Gloo = c10d::ProcessGroupGloo;

class GlooCommunicator final : public Communicator {
 public:
  GlooCommunicator(const GroupSpec& spec, c10::intrusive_ptr<Gloo> gloo,
                   std::unique_ptr<Roster> roster)
      : Communicator(spec), gloo_(std::move(gloo)), roster_(std::move(roster)) {}

  /// Runs `body` of gloo and turns what it throws into a fault of the rank that stands out.
  template <class Body>
  auto guarded(const Request& request, const Body& body) const {
    try {
      return body();
    } catch (const Error&) {
      throw;  // a refusal, not a fault
    } catch (const std::exception& error) {
      throw_fault(diagnose(request, error.what()));
    }
  }

  PeerFault diagnose(const Request& request, const std::string& text) const {
    const bool message = request.op == Collective::send || request.op == Collective::recv;
    if (message) return fault(PeerFault::Cause::stalled, request.peer, request, text);
    const auto suspect = roster_->suspect(request.sequence, request.op);
    if (!suspect) return fault(PeerFault::Cause::stalled, -1, request, text);
    return fault(suspect->cause, suspect->index, request, suspect->detail);
  }

 protected:
  std::unique_ptr<Operation> do_start(const Request& request) override;

 private:
  const c10::intrusive_ptr<Gloo> gloo_;
  const std::unique_ptr<Roster> roster_;
};

class GlooOperation final : public Operation {
 public:
  GlooOperation(const GlooCommunicator& group, Communicator::Request request, C10dWork work)
      : group_(group), request_(std::move(request)), work_(std::move(work)) {}

  bool advance(int64_t wait_ns) override {
    const bool message = request_.op == Collective::send || request_.op == Collective::recv;
    if (wait_ns <= 0 && !message && !work_->isCompleted()) return false;
    return group_.guarded(request_, [&] {
      return work_->wait(milliseconds(wait_ns > 0 ? wait_ns : group_.spec().timeout_ns));
    });
  }

  PeerFault stalled() const override { return group_.diagnose(request_, "time is up"); }

 private:
  const GlooCommunicator& group_;
  const Communicator::Request request_;
  const C10dWork work_;
};

std::unique_ptr<Operation> GlooCommunicator::do_start(const Request& request) {
  const bool message = request.op == Collective::send || request.op == Collective::recv;
  if (!message) roster_->announce(request.sequence, request.op);
  if (is_empty(request)) return nullptr;
  C10dWork work = guarded(request, [&] { return start_call(*gloo_, request); });
  return std::make_unique<GlooOperation>(*this, request, std::move(work));
}

}  // namespace

std::shared_ptr<Communicator> GlooBackend::connect(const GroupSpec& spec) {
  if (!spec.device.is_cpu()) {
    throw Error("comm/gloo serves tensors on the CPU, the run is on " + spec.device.str(),
                "use comm: nccl there");
  }
  const std::string name = spec.key() + "." + std::to_string(generations_[spec.key()]++);
  auto roster =
      std::make_unique<Roster>(spec.rendezvous / (name + ".roster"), spec.size(), spec.index);
  auto store = c10::make_intrusive<c10d::FileStore>((spec.rendezvous / (name + ".gloo")).string(),
                                                    spec.size());
  const auto timeout = milliseconds(spec.timeout_ns);
  store->setTimeout(timeout);
  auto options = Gloo::Options::create();
  options->devices = {Gloo::createDeviceForHostname(options_.address)};
  options->threads = static_cast<int>(options_.threads);
  options->timeout = timeout;
  try {
    auto gloo = c10::make_intrusive<Gloo>(store, spec.index, spec.size(), options);
    return std::make_shared<GlooCommunicator>(spec, std::move(gloo), std::move(roster));
  } catch (const c10::Error& error) {
    throw InfrastructureError("comm/gloo: group '" + spec.name + "' cannot connect through " +
                              options_.address + ": " + error.what_without_backtrace());
  }
}

}  // namespace assay::comm

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::comm::GlooBackend>(
      {.name = "gloo", .summary = "gloo over TCP, through c10d; across hosts on CPU"});
}
