// The shm communicator: a channel behind the front, waited for through the rank's engine.
#include "shm.h"

#include "assay/plugin.h"
#include "engine.h"

namespace assay::comm {
namespace {

class ShmCommunicator final : public Communicator {
 public:
  ShmCommunicator(const GroupSpec& spec, std::shared_ptr<Engine> engine,
                  std::shared_ptr<Channel> channel)
      : Communicator(spec), engine_(std::move(engine)), channel_(std::move(channel)) {}

  Engine& engine() const { return *engine_; }
  Channel& channel() const { return *channel_; }

  PeerFault fault_of(const Trouble& trouble) const {
    Request call;
    call.op = static_cast<Collective>(trouble.call.op);
    call.sequence = trouble.call.sequence;
    return fault(trouble.cause, trouble.rank, call, trouble.detail);
  }

 protected:
  std::unique_ptr<Operation> do_start(const Request& request) override;

 private:
  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<Channel> channel_;
};

/// `Part` is a Job or a Mail.
template <class Part>
class ShmOperation final : public Operation {
 public:
  ShmOperation(ShmCommunicator& group, int peer, std::shared_ptr<Part> part)
      : group_(group), peer_(peer), part_(std::move(part)) {}

  bool advance(int64_t wait_ns) override {
    Channel& channel = group_.channel();
    const auto stop = [&] { return part_->finished() || channel.trouble(); };
    const auto look_for_the_dead = [&] { channel.look_for_the_dead(); };
    if (!group_.engine().run_until(stop, wait_ns, look_for_the_dead)) return false;
    if (!part_->finished()) throw_fault(group_.fault_of(*channel.trouble()));
    return true;
  }

  PeerFault stalled() const override { return group_.fault_of(waits_for(*part_)); }

 private:
  Trouble waits_for(const Job& job) const { return group_.channel().waits_for(job); }
  Trouble waits_for(const Mail& mail) const { return group_.channel().waits_for(mail, peer_); }

  ShmCommunicator& group_;
  const int peer_;
  const std::shared_ptr<Part> part_;
};

template <class Part>
std::unique_ptr<Operation> operation(ShmCommunicator& group, int peer, std::shared_ptr<Part> part) {
  if (part->finished()) return nullptr;
  return std::make_unique<ShmOperation<Part>>(group, peer, std::move(part));
}

std::unique_ptr<Operation> ShmCommunicator::do_start(const Request& request) {
  if (request.op == Collective::send || request.op == Collective::recv) {
    return operation(*this, request.peer, channel_->start_mail(request));
  }
  return operation(*this, request.peer, channel_->start(request));
}

/// A barrier that is not counted: no rank leaves connect() before all have mapped its memory.
void meet(ShmCommunicator& group) {
  const auto call = operation(group, -1, group.channel().start({.op = Collective::barrier}));
  if (call && !call->advance(group.spec().timeout_ns)) throw_fault(call->stalled());
}

int64_t whole_lines(int64_t bytes) { return bytes / kLine * kLine; }

}  // namespace

ShmBackend::ShmBackend(const Options& options)
    : options_(options), engine_(std::make_shared<Engine>(options.spin.nanoseconds)) {}

ShmBackend::~ShmBackend() = default;

std::shared_ptr<Communicator> ShmBackend::connect(const GroupSpec& spec) {
  if (!spec.device.is_cpu()) {
    throw Error("comm/shm serves tensors on the CPU, the run is on " + spec.device.str(),
                "use comm: nccl there");
  }
  const Layout layout{.ranks = spec.size(),
                      .slots = options_.slots,
                      .slot_bytes = whole_lines(options_.chunk.value),
                      .mailbox_bytes = whole_lines(options_.mailbox.value)};
  auto peers =
      std::make_unique<Peers>(spec, layout, engine_->doorbell(), generations_[spec.key()]++);
  auto channel = std::make_shared<Channel>(std::move(peers), spec.index, layout);
  engine_->add(channel);
  auto group = std::make_shared<ShmCommunicator>(spec, engine_, std::move(channel));
  meet(*group);
  return group;
}

}  // namespace assay::comm

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::comm::ShmBackend>(
      {.name = "shm", .summary = "shared memory of one machine; the default on CPU"});
}
