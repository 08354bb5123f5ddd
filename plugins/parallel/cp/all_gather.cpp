// Context parallelism by gathering keys and values, arXiv:2407.21783 section 3.3.2: one message
// with K and V of all ranks, then attention of this rank's queries; dK and dV are reduce-scattered.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "assay/collectives.h"
#include "exchange.h"

namespace assay::parallel {
namespace {

class AllGather final : public Exchange {
 public:
  using Exchange::Exchange;

  AttentionPart forward(const Operands& x, const AttentionSpec& spec, Tensors& saved) override {
    const Sequence sequence = around_.sequence(x.q.size(1));
    const Tensor all = all_gather(at::stack({x.k, x.v}), around_.group);  // (n * 2, B, tau, kd)
    ++around_.messages;
    const Tensor parts = all.view({around_.ranks(), 2, x.k.size(0), x.k.size(1), x.k.size(2)});
    const Operands row{x.q, sequence.whole(parts.select(1, 0)), sequence.whole(parts.select(1, 1))};
    const Pieces pieces = pieces_of_row(sequence, around_.rank(), documents_of(spec));
    around_.work += work_of(pieces, x.q.size(0));
    const AttentionPart part = attend(around_.next, row, pieces, spec);
    saved = {row.q, row.k, row.v, part.out, part.lse};
    return part;
  }

  AttentionGradients backward(const Tensors& saved, const Tensor& dout,
                              const AttentionSpec& spec) override {
    const Operands row{saved[0], saved[1], saved[2]};
    const Sequence sequence = around_.sequence(row.q.size(1));
    const AttentionGradients sums = zeros(row);
    add_gradients(around_.next, dout, row,
                  pieces_of_row(sequence, around_.rank(), documents_of(spec)), {saved[3], saved[4]},
                  spec, sums);
    const Tensor parts = at::empty(
        {around_.ranks(), 2, row.k.size(0), row.q.size(1), row.k.size(2)}, sums.dk.options());
    sequence.scatter(sums.dk, parts.select(1, 0));
    sequence.scatter(sums.dv, parts.select(1, 1));
    const Tensor own = reduce_scatter(parts.flatten(0, 1), around_.group).to(row.k.scalar_type());
    ++around_.messages;
    return {sums.dq.to(row.q.scalar_type()), own.select(0, 0), own.select(0, 1)};
  }

 private:
  AttentionGradients zeros(const Operands& x) const {
    const auto in = [](const Tensor& t, at::ScalarType dtype) {
      return at::zeros_like(t, t.options().dtype(dtype));
    };
    return {in(x.q, statistics_dtype(x.q.scalar_type())), in(x.k, around_.reduce),
            in(x.v, around_.reduce)};
  }
};

}  // namespace

std::unique_ptr<Exchange> make_all_gather(const Surroundings& around) {
  return std::make_unique<AllGather>(around);
}

}  // namespace assay::parallel
