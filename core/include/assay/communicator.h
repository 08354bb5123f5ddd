// Communicator: the collectives that every rank of a group calls in the same order, counted,
// checked and bounded in time; and CommBackend, the contract of kind `comm`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/api.h"
#include "assay/error.h"
#include "assay/kind.h"
#include "assay/tensor.h"

namespace assay {

enum class ReduceOp { sum, max, min };
enum class Collective {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  send,
  recv,
  barrier
};

ASSAY_API const char* name_of(ReduceOp op);
ASSAY_API const char* name_of(Collective op);
/// "fp32", "bf16", "float8_e4m3", "int64", ...: the `dtype` of the collectives table.
ASSAY_API std::string dtype_name(at::ScalarType dtype);

/// The ranks that talk to each other, as one of them sees it.
struct GroupSpec {
  std::string name{};                    ///< "tp", "fsdp", ...: the `grp` of the collectives table
  std::vector<int> ranks{};              ///< global ranks, ascending
  int index = 0;                         ///< this rank's place in `ranks`
  std::filesystem::path rendezvous{};    ///< private folder (0700) that all ranks see
  int64_t timeout_ns = 600'000'000'000;  ///< of one collective
  at::Device device = at::kCPU;

  int size() const { return static_cast<int>(ranks.size()); }
  /// Unique among the groups of a run: groups of one name never share a rank.
  std::string key() const { return name + "@" + std::to_string(ranks.front()); }
};

/// Who broke a collective, and where.
struct PeerFault {
  enum class Cause { dead, stalled, disagrees } cause = Cause::stalled;
  std::string group{};
  int rank = -1;             ///< global
  std::string collective{};  ///< the call that this rank waits in
  uint64_t sequence = 0;     ///< its number in the group, counted from 1
  std::string detail{};      ///< what the peer does instead, if it is known
};

/// A peer stalled (time-out) or calls something else: the recipe's fault.
class ASSAY_API PeerError : public Error {
 public:
  explicit PeerError(PeerFault fault);
  ~PeerError() override;
  const PeerFault& fault() const { return fault_; }

 private:
  PeerFault fault_;
};

/// A peer's process ended; the reason is in that rank's own log.
class ASSAY_API LostPeer : public InfrastructureError {
 public:
  explicit LostPeer(PeerFault fault);
  ~LostPeer() override;
  const PeerFault& fault() const { return fault_; }

 private:
  PeerFault fault_;
};

/// Throws LostPeer for a dead peer, else PeerError.
[[noreturn]] ASSAY_API void throw_fault(const PeerFault& fault);

/// One call under way, as a backend sees it.
class ASSAY_API Operation {
 public:
  virtual ~Operation();
  /// Does what can be done, waiting for peers at most `wait_ns` (0: not at all). True when
  /// finished. Throws through throw_fault() when a peer is dead or calls something else.
  virtual bool advance(int64_t wait_ns) = 0;
  /// Whom it waits for; asked when the time is up.
  virtual PeerFault stalled() const = 0;
};

/// A handle on one call. Its tensors must not be touched before wait() returned or poll() said
/// true; the communicator keeps them alive. Calls of one group finish in the order they were made.
class [[nodiscard]] Work {
 public:
  Work() = default;       ///< finished
  ASSAY_API void wait();  ///< throws PeerError, LostPeer
  ASSAY_API bool poll();  ///< true when finished; also moves every other call of this rank on

 private:
  friend class Communicator;
  struct Call;
  explicit Work(std::shared_ptr<Call> call) : call_(std::move(call)) {}
  std::shared_ptr<Call> call_;
};

/// Counts of one (operation, dtype, phase): a row of the collectives table. Closed forms of the
/// ring per rank (S payload, n ranks): all_reduce 2S(n-1)/n, all_gather and reduce_scatter
/// S(n-1)/n, all_to_all what goes to other ranks, send S, broadcast S(n-1) at the root.
struct Traffic {
  std::string group{};
  std::string op{};
  std::string dtype{};
  std::string phase{};
  int64_t count = 0;
  int64_t payload_bytes = 0;
  int64_t wire_bytes = 0;
  double total_s = 0;    ///< from call to completion
  double exposed_s = 0;  ///< of these, spent inside the call and wait()
};

/// Names the phase that calls of this thread are counted under: forward, backward, optimizer, eval,
/// control (traffic that only informs or decides). Nests; the innermost wins.
class ASSAY_API PhaseScope {
 public:
  explicit PhaseScope(std::string_view phase);
  ~PhaseScope();
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;
  static const std::string& current();  ///< "other" outside every scope

 private:
  std::string outer_;
};

/// Collectives over one group.
///
/// Called:   by all ranks of the group, in the same order with the same operation, dtype and sizes.
///           send and recv are ordered per pair of ranks, apart from the collectives.
/// Threads:  one at a time, the rank's own.
/// Tensors:  contiguous, on the group's device; any dtype of 1, 2, 4 or 8 bytes, reductions on
/// every
///           real one. Empty tensors are fine. Meta tensors are counted and nothing moves.
/// Numerics: reductions add in rank order 0, 1, ..., n-1, in fp32 (fp64 for fp64), round once, and
///           give every rank the same bits. Integers wrap; bool: sum is or, max is or, min is and.
/// Errors:   after a fault the group refuses every further call.
/// Autograd: none; see assay/collectives.h.
class ASSAY_API Communicator {
 public:
  /// One checked call: tensors are contiguous, on the device, of matching shapes and dtypes.
  struct Request {
    Collective op = Collective::barrier;
    ReduceOp reduce = ReduceOp::sum;
    Tensor out{};  ///< written (all_reduce and broadcast: read as well)
    Tensor in{};
    std::vector<int64_t> out_splits{};  ///< rows; all_to_all only
    std::vector<int64_t> in_splits{};
    int peer = -1;          ///< root, destination or source
    uint64_t sequence = 0;  ///< from 1; per group, for send and recv per pair and direction
  };

  explicit Communicator(GroupSpec spec);
  virtual ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return spec_.index; }
  int size() const { return spec_.size(); }
  const std::string& name() const { return spec_.name; }
  const GroupSpec& spec() const { return spec_; }

  Work all_reduce(Tensor& inout, ReduceOp op = ReduceOp::sum);
  Work all_gather(Tensor& out, const Tensor& in);  ///< out (n*d0, ...), in (d0, ...)
  Work reduce_scatter(Tensor& out, const Tensor& in,
                      ReduceOp op = ReduceOp::sum);  ///< inverse shapes
  /// Splits are rows of dimension 0 per rank: in_splits what goes to it, out_splits what comes.
  Work all_to_all(Tensor& out, const Tensor& in, std::span<const int64_t> out_splits,
                  std::span<const int64_t> in_splits);
  Work all_to_all(Tensor& out, const Tensor& in);  ///< equal splits
  Work broadcast(Tensor& inout, int root);
  Work send(const Tensor& tensor, int peer);  ///< peer: index in the group
  Work recv(Tensor& tensor, int peer);
  Work barrier();

  /// Rows of the collectives table so far, in the order of first use.
  std::vector<Traffic> traffic() const;
  /// Seconds that calls have exposed so far, without phase `control`; a step's share is a
  /// difference.
  double exposed_s() const;
  /// Forgets the counts (after warm-up, say), not the sequence numbers.
  void reset_traffic();

  /// Finds a communicator again inside an operator (assay/collectives.h): unique in this process.
  int64_t handle() const { return handle_; }
  static Communicator& of(int64_t handle);

  /// For backends: a fault of the rank with place `index` in the group (-1: unknown).
  PeerFault fault(PeerFault::Cause cause, int index, const Request& request,
                  std::string detail = {}) const;

 protected:
  /// Starts a call; null when it is finished already. The operation may keep `request`.
  virtual std::unique_ptr<Operation> do_start(const Request& request) = 0;

 private:
  friend struct Work::Call;
  class Ledger;
  class Numbering;
  Work start(Request request, int64_t payload_bytes, int64_t wire_numerator);
  void require(bool condition, Collective op, const std::string& text) const;
  void check_tensor(const Tensor& tensor, Collective op, const char* role) const;
  void check_pair(const Tensor& out, const Tensor& in, Collective op) const;
  void check_peer(int peer, Collective op) const;

  const GroupSpec spec_;
  const int64_t handle_;
  std::shared_ptr<Ledger> ledger_;
  std::unique_ptr<Numbering> numbering_;
};

/// Makes communicators; one instance per rank.
class ASSAY_API CommBackend {
 public:
  static constexpr Kind kind = Kind::comm;
  virtual ~CommBackend();
  /// Called by all ranks of the group, in the same order of groups on every rank; size >= 2.
  virtual std::shared_ptr<Communicator> connect(const GroupSpec& spec) = 0;
};

/// A group of one: copies input to output, so that no caller asks "am I alone?".
ASSAY_API std::shared_ptr<Communicator> solo_communicator(GroupSpec spec);

}  // namespace assay
