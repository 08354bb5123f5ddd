// The layer that moves rows between the plain dispatch, which orders them, and the experts.
#include "ep.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <numeric>
#include <utility>

#include "assay/collectives.h"
#include "assay/ops.h"
#include "assay/plugin.h"

namespace assay::parallel {
namespace {

using Sizes = std::vector<int64_t>;

/// Sums of `parts` equal stretches.
Sizes sums(const Sizes& values, int64_t parts) {
  const auto stretch = static_cast<int64_t>(values.size()) / parts;
  Sizes result;
  for (auto begin = values.begin(); begin != values.end(); begin += stretch) {
    result.push_back(std::accumulate(begin, begin + stretch, int64_t{0}));
  }
  return result;
}

class EpOps final : public OpsLayer {
 public:
  EpOps(std::unique_ptr<Ops> next, const RankContext& context)
      : OpsLayer(std::move(next)),
        group_(context.groups(MeshDim::ep)),
        messages_(context.counters["ep.messages"]) {}

  Dispatch dispatch(const Tensor& x, const Tensor& experts, int64_t expert_count,
                    int64_t pad_rows) override {
    auto sender =
        std::make_shared<Dispatch>(next().dispatch(x, experts, expert_count, /*pad_rows=*/1));
    const Sizes arriving = exchange_counts(sender->expert_rows, experts);
    const Sizes sent = sums(sender->expert_rows, group_.size());
    const Sizes received = sums(arriving, group_.size());
    const Tensor rows = exchange(sender->rows, received, sent);
    sender->rows = Tensor();
    Dispatch here = next().dispatch(rows, experts_of(arriving, experts),
                                    expert_count / group_.size(), pad_rows);
    here.sender = std::move(sender);
    here.sent = sent;
    here.received = received;
    return here;
  }

  Tensor combine(const Tensor& y, const Dispatch& here, const Tensor& gates) override {
    if (!here.sender) return next().combine(y, here, gates);
    const Tensor answers = next().combine(y, here, {});
    return next().combine(exchange(answers, here.sent, here.received), *here.sender, gates);
  }

 private:
  Tensor exchange(const Tensor& rows, const Sizes& out, const Sizes& in) {
    ++messages_;
    return all_to_all(rows, group_, out, in);
  }

  /// Rows for each expert of this rank from each rank, by (rank, expert). On meta nothing arrives:
  /// every rank is taken to send what this one does.
  Sizes exchange_counts(const Sizes& counts, const Tensor& like) {
    const PhaseScope control("control");
    const auto mine = static_cast<int64_t>(counts.size()) / group_.size();
    const Sizes splits(static_cast<size_t>(group_.size()), mine);
    const bool meta = like.is_meta();
    const Tensor all = all_to_all(
        meta ? at::empty(like_sizes(counts), like.options()) : at::tensor(counts).to(like.device()),
        group_, splits, splits);
    Sizes arriving;
    if (meta) {
      const auto own = counts.begin() + group_.rank() * mine;
      for (int r = 0; r < group_.size(); ++r) arriving.insert(arriving.end(), own, own + mine);
    } else {
      const Tensor host = all.cpu();
      const auto* data = host.const_data_ptr<int64_t>();
      arriving.assign(data, data + host.numel());
    }
    return arriving;
  }

  static Shape like_sizes(const Sizes& counts) { return {static_cast<int64_t>(counts.size())}; }

  /// The expert of each row that came, counted from this rank's first, as a choice of one.
  Tensor experts_of(const Sizes& arriving, const Tensor& like) const {
    const int64_t rows = std::accumulate(arriving.begin(), arriving.end(), int64_t{0});
    if (like.is_meta()) return at::empty({rows, 1}, like.options());
    const size_t mine = arriving.size() / static_cast<size_t>(group_.size());
    Tensor ids = at::empty({rows, 1}, at::TensorOptions(at::kLong));
    auto* data = ids.mutable_data_ptr<int64_t>();
    for (size_t i = 0; i < arriving.size(); ++i) {
      data = std::fill_n(data, arriving[i], static_cast<int64_t>(i % mine));
    }
    return ids.to(like.device());
  }

  Communicator& group_;
  int64_t& messages_;
};

}  // namespace

void Ep::place(ParameterPlacement& placement, const Mesh& mesh) const {
  const auto experts = placement.dim_of(Axis::expert);
  if (!experts) return;
  placement.cut(MeshDim::ep, *experts, mesh.degree(MeshDim::ep), mesh.coordinate(MeshDim::ep));
}

std::unique_ptr<Ops> Ep::wrap_ops(std::unique_ptr<Ops> next, const RankContext& context) {
  return std::make_unique<EpOps>(std::move(next), context);
}

}  // namespace assay::parallel

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::parallel::Ep>(
      {.name = "ep",
       .summary = "experts over ranks, tokens sent to them by all-to-all",
       .reference = "arXiv:2006.16668",
       .provides = {"meta.safe"},
       .needs = {"model.moe"},
       .rules = {{"R-EPDIV", "facts.experts % mesh.ep == 0",
                  "every rank of mesh.ep holds the same number of experts"},
                 {"R-EPSP", "mesh.ep == 1 or mesh.tp == 1 or parallel.tp.sp",
                  "without sp every tp rank would send the same tokens to the experts"}},
       .dims = {"ep"}});
}
