// The NCCL communicator: streams wait, errors name a rank where one stands out.
#include "nccl_backend.h"

#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "../c10d/calls.h"
#include "../c10d/roster.h"
#include "assay/plugin.h"

// ProcessGroupNCCL::Options embeds ncclConfig_t: another version has another layout.
static_assert(NCCL_VERSION_CODE == NCCL_VERSION(2, 28, 9), "nccl.h must be that of the wheel");

namespace assay::comm {
namespace {

using Nccl = c10d::ProcessGroupNCCL;

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(const GroupSpec& spec, c10::intrusive_ptr<Nccl> nccl,
                   std::unique_ptr<Roster> roster)
      : Communicator(spec), nccl_(std::move(nccl)), roster_(std::move(roster)) {}

  ~NcclCommunicator() override {
    const c10::cuda::CUDAGuard device(spec().device);
    c10::cuda::device_synchronize();
    nccl_->shutdown();  // before its store and the static objects of CUDA go
  }

  /// Runs `body` and turns what NCCL throws into a fault of the rank that stands out.
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
    const auto suspect = roster_->suspect(request.sequence, request.op);
    if (!suspect) return fault(PeerFault::Cause::stalled, -1, request, text);
    return fault(suspect->cause, suspect->index, request, suspect->detail + "; " + text);
  }

 protected:
  std::unique_ptr<Operation> do_start(const Request& request) override;

 private:
  const c10::intrusive_ptr<Nccl> nccl_;
  const std::unique_ptr<Roster> roster_;
};

class NcclOperation final : public Operation {
 public:
  NcclOperation(const NcclCommunicator& group, Communicator::Request request, C10dWork work)
      : group_(group), request_(std::move(request)), work_(std::move(work)) {}

  bool advance(int64_t wait_ns) override {
    return group_.guarded(request_, [&] {
      if (wait_ns <= 0 && !work_->isCompleted()) return false;
      return work_->wait();  // the current stream, not the host
    });
  }

  PeerFault stalled() const override { return group_.diagnose(request_, "time is up"); }

 private:
  const NcclCommunicator& group_;
  const Communicator::Request request_;
  const C10dWork work_;
};

std::unique_ptr<Operation> NcclCommunicator::do_start(const Request& request) {
  const bool message = request.op == Collective::send || request.op == Collective::recv;
  if (!message) roster_->announce(request.sequence, request.op);
  if (is_empty(request)) return nullptr;
  const c10::cuda::CUDAGuard device(spec().device);
  C10dWork work = guarded(request, [&] { return start_call(*nccl_, request); });
  return std::make_unique<NcclOperation>(*this, request, std::move(work));
}

void check_device(const GroupSpec& spec) {
  const int gpus = static_cast<int>(c10::cuda::device_count());
  if (gpus == 0) {
    throw Error("comm/nccl needs an NVIDIA GPU, this machine shows none",
                "use comm: shm or comm: gloo on the CPU");
  }
  if (!spec.device.is_cuda() || spec.device.index() < 0 || spec.device.index() >= gpus) {
    throw Error("comm/nccl serves cuda:0 to cuda:" + std::to_string(gpus - 1) +
                    ", this rank runs on " + spec.device.str(),
                "give every rank its own GPU");
  }
}

}  // namespace

std::shared_ptr<Communicator> NcclBackend::connect(const GroupSpec& spec) {
  check_device(spec);
  const std::string name = spec.key() + "." + std::to_string(generations_[spec.key()]++);
  auto roster =
      std::make_unique<Roster>(spec.rendezvous / (name + ".roster"), spec.size(), spec.index);
  auto store = c10::make_intrusive<c10d::FileStore>((spec.rendezvous / (name + ".nccl")).string(),
                                                    spec.size());
  store->setTimeout(milliseconds(spec.timeout_ns));
  auto options = Nccl::Options::create(options_.high_priority);
  options->timeout = milliseconds(spec.timeout_ns);
  auto nccl = c10::make_intrusive<Nccl>(store, spec.index, spec.size(), options);
  nccl->setBoundDeviceId(spec.device);
  return std::make_shared<NcclCommunicator>(spec, std::move(nccl), std::move(roster));
}

}  // namespace assay::comm

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::comm::NcclBackend>(
      {.name = "nccl", .summary = "NCCL, one rank per NVIDIA GPU", .needs = {"device.cuda"}});
}
