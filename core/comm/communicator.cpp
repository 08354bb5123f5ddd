// The front of every communicator: checks, counts and starts calls.
#include "assay/communicator.h"

#include <map>
#include <mutex>
#include <numeric>

#include "core/base/clock.h"
#include "core/comm/ledger.h"
#include "core/comm/work.h"

namespace assay {
namespace {

/// Process-wide, so that an operator finds its group from an integer.
struct Directory {
  std::mutex mutex;
  std::map<int64_t, Communicator*> entries;
  int64_t next = 1;

  int64_t add(Communicator* communicator) {
    const std::lock_guard lock(mutex);
    entries[next] = communicator;
    return next++;
  }
};

Directory& directory() {
  static auto& instance = *new Directory;  // never destroyed: operators may outlive statics
  return instance;
}

int64_t rows_of_splits(std::span<const int64_t> splits) {
  return std::accumulate(splits.begin(), splits.end(), int64_t{0});
}

int64_t bytes_of(const Tensor& tensor) { return static_cast<int64_t>(tensor.nbytes()); }

}  // namespace

Operation::~Operation() = default;
CommBackend::~CommBackend() = default;

Communicator::Communicator(GroupSpec spec)
    : spec_(std::move(spec)),
      handle_(directory().add(this)),
      ledger_(std::make_shared<Ledger>(spec_.name, size())),
      numbering_(std::make_unique<Numbering>(size())) {}

Communicator::~Communicator() {
  const std::lock_guard lock(directory().mutex);
  directory().entries.erase(handle_);
}

Communicator& Communicator::of(int64_t handle) {
  const std::lock_guard lock(directory().mutex);
  const auto entry = directory().entries.find(handle);
  ASSAY_CHECK(entry != directory().entries.end(),
              "no communicator has handle " + std::to_string(handle) + " any more");
  return *entry->second;
}

void Communicator::require(bool condition, Collective op, const std::string& text) const {
  if (condition) return;
  throw Error(std::string(name_of(op)) + " in group '" + name() + "' (rank " +
              std::to_string(rank()) + " of " + std::to_string(size()) + "): " + text);
}

void Communicator::check_tensor(const Tensor& tensor, Collective op, const char* role) const {
  require(tensor.defined(), op, std::string(role) + " is undefined");
  require(tensor.is_meta() || tensor.device().type() == spec_.device.type(), op,
          std::string(role) + " is on " + tensor.device().str() + ", the group on " +
              spec_.device.str());
  require(tensor.is_contiguous(), op, std::string(role) + " is not contiguous; call contiguous()");
  require(!tensor.is_complex(), op,
          std::string(role) + " is complex; send real and imaginary part apart");
}

void Communicator::check_pair(const Tensor& out, const Tensor& in, Collective op) const {
  check_tensor(out, op, "out");
  check_tensor(in, op, "in");
  require(out.scalar_type() == in.scalar_type(), op,
          "out is " + dtype_name(out.scalar_type()) + " but in is " + dtype_name(in.scalar_type()));
  require(out.is_meta() == in.is_meta(), op, "one of out and in is on meta, the other is not");
}

void Communicator::check_peer(int peer, Collective op) const {
  require(peer >= 0 && peer < size(), op,
          "rank " + std::to_string(peer) + " is outside 0.." + std::to_string(size() - 1));
  require(op == Collective::broadcast || peer != rank(), op, "a rank cannot send to itself");
}

Work Communicator::all_reduce(Tensor& inout, ReduceOp op) {
  check_tensor(inout, Collective::all_reduce, "inout");
  const int64_t bytes = bytes_of(inout);
  return start({.op = Collective::all_reduce, .reduce = op, .out = inout, .in = inout}, bytes,
               2 * bytes * (size() - 1));
}

Work Communicator::all_gather(Tensor& out, const Tensor& in) {
  constexpr auto kOp = Collective::all_gather;
  check_pair(out, in, kOp);
  require(out.numel() == in.numel() * size(), kOp,
          "out has " + std::to_string(out.numel()) + " elements, needs " + std::to_string(size()) +
              " x " + std::to_string(in.numel()));
  return start({.op = kOp, .out = out, .in = in}, bytes_of(out), bytes_of(out) * (size() - 1));
}

Work Communicator::reduce_scatter(Tensor& out, const Tensor& in, ReduceOp op) {
  constexpr auto kOp = Collective::reduce_scatter;
  check_pair(out, in, kOp);
  require(in.numel() == out.numel() * size(), kOp,
          "in has " + std::to_string(in.numel()) + " elements, needs " + std::to_string(size()) +
              " x " + std::to_string(out.numel()));
  return start({.op = kOp, .reduce = op, .out = out, .in = in}, bytes_of(in),
               bytes_of(in) * (size() - 1));
}

Work Communicator::all_to_all(Tensor& out, const Tensor& in, std::span<const int64_t> out_splits,
                              std::span<const int64_t> in_splits) {
  constexpr auto kOp = Collective::all_to_all;
  check_pair(out, in, kOp);
  require(out.dim() > 0 && in.dim() > 0 && out.sizes().slice(1) == in.sizes().slice(1), kOp,
          "out and in must have rows of one shape");
  const auto n = static_cast<size_t>(size());
  require(out_splits.size() == n && in_splits.size() == n, kOp,
          "needs one split per rank, " + std::to_string(n));
  require(rows_of_splits(in_splits) == in.size(0) && rows_of_splits(out_splits) == out.size(0), kOp,
          "splits must add up to the rows of their tensor");
  const size_t me = static_cast<size_t>(rank());
  require(in_splits[me] == out_splits[me], kOp,
          "sends itself " + std::to_string(in_splits[me]) + " rows but expects " +
              std::to_string(out_splits[me]));
  const int64_t row_bytes =
      in.size(0) > 0 ? bytes_of(in) / in.size(0) : 0;  // empty input: nothing to send
  return start({.op = kOp,
                .out = out,
                .in = in,
                .out_splits = {out_splits.begin(), out_splits.end()},
                .in_splits = {in_splits.begin(), in_splits.end()}},
               bytes_of(in), (in.size(0) - in_splits[me]) * row_bytes * size());
}

Work Communicator::all_to_all(Tensor& out, const Tensor& in) {
  constexpr auto kOp = Collective::all_to_all;
  require(in.defined() && in.dim() > 0 && in.size(0) % size() == 0, kOp,
          "equal splits need a multiple of " + std::to_string(size()) + " rows");
  const std::vector<int64_t> splits(static_cast<size_t>(size()), in.size(0) / size());
  return all_to_all(out, in, splits, splits);
}

Work Communicator::broadcast(Tensor& inout, int root) {
  constexpr auto kOp = Collective::broadcast;
  check_tensor(inout, kOp, "inout");
  check_peer(root, kOp);
  const int64_t sent = root == rank() ? bytes_of(inout) * (size() - 1) : 0;
  return start({.op = kOp, .out = inout, .in = inout, .peer = root}, bytes_of(inout),
               sent * size());
}

Work Communicator::send(const Tensor& tensor, int peer) {
  check_tensor(tensor, Collective::send, "tensor");
  check_peer(peer, Collective::send);
  return start({.op = Collective::send, .in = tensor, .peer = peer}, bytes_of(tensor),
               bytes_of(tensor) * size());
}

Work Communicator::recv(Tensor& tensor, int peer) {
  check_tensor(tensor, Collective::recv, "tensor");
  check_peer(peer, Collective::recv);
  return start({.op = Collective::recv, .out = tensor, .peer = peer}, bytes_of(tensor), 0);
}

Work Communicator::barrier() { return start({.op = Collective::barrier}, 0, 0); }

Work Communicator::start(Request request, int64_t payload_bytes, int64_t wire_numerator) {
  if (ledger_->fault) throw_fault(*ledger_->fault);
  request.sequence = numbering_->next(request.op, request.peer);
  const Tensor& tensor = request.in.defined() ? request.in : request.out;
  const auto row =
      ledger_->count(request.op, tensor.defined() ? dtype_name(tensor.scalar_type()) : "none",
                     payload_bytes, wire_numerator);
  if (tensor.defined() && tensor.is_meta()) return {};

  auto call = std::make_shared<Work::Call>();
  call->ledger = ledger_;
  call->row = row;
  call->timeout_ns = spec_.timeout_ns;
  call->started_s = monotonic_s();
  try {
    call->operation = do_start(request);
  } catch (const PeerError& error) {
    call->fail(error.fault());
  } catch (const LostPeer& error) {
    call->fail(error.fault());
  }
  call->exposed_s = monotonic_s() - call->started_s;
  if (!call->operation) {
    ledger_->add_seconds(row, call->exposed_s, call->exposed_s);
    return {};
  }
  return Work(std::move(call));
}

PeerFault Communicator::fault(PeerFault::Cause cause, int index, const Request& request,
                              std::string detail) const {
  return {.cause = cause,
          .group = name(),
          .rank = index < 0 ? -1 : spec_.ranks[static_cast<size_t>(index)],
          .collective = name_of(request.op),
          .sequence = request.sequence,
          .detail = std::move(detail)};
}

std::vector<Traffic> Communicator::traffic() const { return ledger_->rows(); }
double Communicator::exposed_s() const { return ledger_->exposed_s(); }
void Communicator::reset_traffic() { ledger_->reset(); }

}  // namespace assay
