// Registration, the table of handles, and document starts as the flat list an operator can take.
#include "ring_operator.h"

#include <torch/library.h>

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "assay/operators.h"

namespace assay::parallel {
namespace {

/// The rings of this process: one per rank that is a thread of it.
class Table {
 public:
  static Table& instance() {
    static Table* table = new Table;  // never destroyed: ranks may outlive main
    return *table;
  }
  int64_t add(RingAttention* ring) {
    const std::lock_guard lock(mutex_);
    rings_[++last_] = ring;
    return last_;
  }
  void remove(int64_t handle) {
    const std::lock_guard lock(mutex_);
    rings_.erase(handle);
  }
  RingAttention& at(int64_t handle) {
    const std::lock_guard lock(mutex_);
    return *rings_.at(handle);
  }

 private:
  std::mutex mutex_;
  std::map<int64_t, RingAttention*> rings_;
  int64_t last_ = 0;
};

/// Rows one after the other: each begins with its 0.
std::vector<int64_t> flat(const AttentionSpec& spec) {
  std::vector<int64_t> starts;
  if (!spec.documents) return starts;
  for (const auto& row : spec.documents->starts)
    starts.insert(starts.end(), row.begin(), row.end());
  return starts;
}

std::shared_ptr<const Documents> documents(at::IntArrayRef starts) {
  auto result = std::make_shared<Documents>();
  for (const int64_t start : starts) {
    if (start == 0) result->starts.emplace_back();
    result->starts.back().push_back(start);
  }
  return result;
}

std::tuple<Tensor, Tensor> attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                     int64_t ring, at::IntArrayRef starts, int64_t head_dim,
                                     double scale) {
  const AttentionPart part = Table::instance().at(ring).run(
      {q, k, v},
      {.head_dim = head_dim, .scale = scale, .causal = true, .documents = documents(starts)});
  return {part.out, part.lse};
}

}  // namespace

RingAttention::RingAttention() : handle_(Table::instance().add(this)) {}
RingAttention::~RingAttention() { Table::instance().remove(handle_); }

// One kernel for every device: it is made of operators and of messages that skip meta tensors.
void register_ring_operator() {
  static const auto* library = [] {
    auto* made =
        new torch::Library(torch::Library::FRAGMENT, "assay_cp", std::nullopt, __FILE__, __LINE__);
    made->def(
        "attention(Tensor q, Tensor k, Tensor v, int ring, int[] starts, int head_dim, float scale)"
        " -> (Tensor, Tensor)");
    made->impl("attention",
               torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(attention)));
    return made;
  }();
  (void)library;
}

AttentionPart call_ring(const RingAttention& ring, const Operands& x, const AttentionSpec& spec) {
  static const auto op = find_operator<decltype(attention)>("assay_cp::attention");
  auto [out, lse] = op.call(x.q, x.k, x.v, ring.handle(), flat(spec), spec.head_dim, spec.scale);
  return {out, lse};
}

}  // namespace assay::parallel
