// The thread communicator: posts at the start of a call, combines when all have posted.
#include "thread.h"

#include <ATen/core/grad_mode.h>

#include "assay/plugin.h"
#include "board.h"
#include "combine.h"

namespace assay::comm {
namespace {

class ThreadCommunicator final : public Communicator {
 public:
  explicit ThreadCommunicator(const GroupSpec& spec) : Communicator(spec), board(board_of(spec)) {}
  const std::shared_ptr<Board> board;

 protected:
  std::unique_ptr<Operation> do_start(const Request& request) override;
};

/// Two requests that may meet: equal but for tensors and splits.
bool agree(const Posted& a, const Posted& b) {
  const bool sized = a.request.op != Collective::all_to_all && a.request.op != Collective::barrier;
  return a.request.op == b.request.op && a.request.reduce == b.request.reduce &&
         a.request.peer == b.request.peer && a.input.defined() == b.input.defined() &&
         (!a.input.defined() || a.input.scalar_type() == b.input.scalar_type()) &&
         (!sized || a.input.numel() == b.input.numel());
}

std::string describe(const Posted& posted) {
  std::string text = "it calls " + std::string(name_of(posted.request.op));
  if (posted.input.defined()) {
    text += " of " + std::to_string(posted.input.numel()) + " x " +
            dtype_name(posted.input.scalar_type());
  }
  return text;
}

class CollectiveOperation final : public Operation {
 public:
  CollectiveOperation(ThreadCommunicator& group, Communicator::Request request)
      : group_(group), request_(std::move(request)) {}

  bool advance(int64_t wait_ns) override {
    const auto inputs = group_.board->take(request_.sequence, wait_ns);
    if (!inputs) return false;
    check(*inputs);
    combine(request_, group_.rank(), *inputs);
    return true;
  }

  PeerFault stalled() const override {
    return group_.fault(PeerFault::Cause::stalled, group_.board->missing(request_.sequence),
                        request_);
  }

 private:
  void check(const std::vector<Posted>& inputs) const {
    const Posted& mine = inputs[static_cast<size_t>(group_.rank())];
    for (int peer = 0; peer < group_.size(); ++peer) {
      const Posted& theirs = inputs[static_cast<size_t>(peer)];
      const bool fits = request_.op != Collective::all_to_all || !agree(mine, theirs) ||
                        theirs.request.in_splits[static_cast<size_t>(group_.rank())] ==
                            request_.out_splits[static_cast<size_t>(peer)];
      if (agree(mine, theirs) && fits) continue;
      throw_fault(group_.fault(PeerFault::Cause::disagrees, peer, request_, describe(theirs)));
    }
  }

  ThreadCommunicator& group_;
  const Communicator::Request request_;
};

class ReceiveOperation final : public Operation {
 public:
  ReceiveOperation(ThreadCommunicator& group, Communicator::Request request)
      : group_(group), request_(std::move(request)) {}

  bool advance(int64_t wait_ns) override {
    const auto message =
        group_.board->take_message(request_.peer, group_.rank(), request_.sequence, wait_ns);
    if (!message) return false;
    if (message->input.numel() != request_.out.numel() ||
        message->input.scalar_type() != request_.out.scalar_type()) {
      throw_fault(
          group_.fault(PeerFault::Cause::disagrees, request_.peer, request_, describe(*message)));
    }
    const at::NoGradGuard no_grad;
    request_.out.view(-1).copy_(message->input.view(-1));
    return true;
  }

  PeerFault stalled() const override {
    return group_.fault(PeerFault::Cause::stalled, request_.peer, request_);
  }

 private:
  ThreadCommunicator& group_;
  const Communicator::Request request_;
};

std::unique_ptr<Operation> ThreadCommunicator::do_start(const Request& request) {
  if (request.op == Collective::recv) return std::make_unique<ReceiveOperation>(*this, request);
  const at::NoGradGuard no_grad;
  Posted posted{.request = request, .input = request.in.defined() ? request.in.clone() : Tensor()};
  posted.request.in = Tensor();
  posted.request.out = Tensor();
  if (request.op == Collective::send) {
    board->post_message(rank(), std::move(posted));
    return nullptr;
  }
  board->post(rank(), std::move(posted));
  return std::make_unique<CollectiveOperation>(*this, request);
}

}  // namespace

std::shared_ptr<Communicator> ThreadBackend::connect(const GroupSpec& spec) {
  return std::make_shared<ThreadCommunicator>(spec);
}

}  // namespace assay::comm

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::comm::ThreadBackend>(
      {.name = "thread", .summary = "ranks as threads of one process, for unit tests"});
}
