// Ring attention, arXiv:2310.01889: blocks of keys and values travel around the ranks while the
// block at hand is attended to; parts are merged by their lse, backward uses the lse of all.
#include <ATen/ops/empty_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include <utility>

#include "exchange.h"
#include "ring_operator.h"

namespace assay::parallel {
namespace {

/// A block on its way to the next rank, and the one that comes from the rank before.
struct Passing {
  Tensor sent{}, received{};
  Work send{}, receive{};

  Tensor wait() {
    send.wait();
    receive.wait();
    return std::exchange(received, {});
  }
};

class Ring final : public Exchange, public RingAttention {
 public:
  explicit Ring(const Surroundings& around) : Exchange(around) {}

  // One operator for all steps: what recompute keeps is the merged output, once.
  AttentionPart forward(const Operands& x, const AttentionSpec& spec, Tensors& saved) override {
    const AttentionPart part = call_ring(*this, x, spec);
    saved = {x.q, x.k, x.v, part.out, part.lse};
    return part;
  }

  AttentionPart run(const Operands& x, const AttentionSpec& spec) override {
    const Sequence sequence = around_.sequence(x.q.size(1));
    AttentionPart sum;
    Tensor block = at::stack({x.k, x.v});  // one message
    for (int64_t step = 0; step < around_.ranks(); ++step) {
      const bool last = step + 1 == around_.ranks();
      Passing keys = last ? Passing() : pass_on(block);
      const Pieces pieces = pieces_of_step(sequence, step, spec);
      around_.work += work_of(pieces, x.q.size(0));
      const Operands held{x.q, block.select(0, 0), block.select(0, 1)};
      if (step == 0) {
        sum = attend(around_.next, held, pieces, spec);
        sum.out = sum.out.to(sum.lse.scalar_type());
      } else {
        attend_more(around_.next, held, pieces, spec, sum);
      }
      if (!last) block = keys.wait();
    }
    return {sum.out.to(x.q.scalar_type()), sum.lse};
  }

  // dK and dV of a block start at the rank after its owner, who sees it first, and gather the
  // others' parts on the way home; the owner adds its own.
  AttentionGradients backward(const Tensors& saved, const Tensor& dout,
                              const AttentionSpec& spec) override {
    const Tensor &q = saved[0], &k = saved[1];
    const Sequence sequence = around_.sequence(q.size(1));
    const Tensor dq = zeros(q, statistics_dtype(q.scalar_type()));
    Tensor block = at::stack({k, saved[2]}), own;
    Passing gradients;
    for (int64_t step = 0; step < around_.ranks(); ++step) {
      const bool last = step + 1 == around_.ranks();
      Passing keys = last ? Passing() : pass_on(block);
      const Tensor dblock = zeros(block, around_.reduce);
      add_gradients(around_.next, dout, {q, block.select(0, 0), block.select(0, 1)},
                    pieces_of_step(sequence, step, spec), {saved[3], saved[4]}, spec,
                    {dq, dblock.select(0, 0), dblock.select(0, 1)});
      if (step > 1) dblock.add_(gradients.wait());
      if (step == 0) {
        own = dblock;
      } else {
        gradients = pass_on(dblock);
      }
      if (!last) block = keys.wait();
    }
    if (around_.ranks() > 1) own.add_(gradients.wait());
    own = own.to(k.scalar_type());
    return {dq.to(q.scalar_type()), own.select(0, 0), own.select(0, 1)};
  }

 private:
  /// After `step` steps this rank holds the block of the rank that is as many places before it.
  Pieces pieces_of_step(const Sequence& sequence, int64_t step, const AttentionSpec& spec) const {
    const int64_t n = around_.ranks(), owner = (around_.rank() - step + n) % n;
    return pieces_of_block(sequence, around_.rank(), owner, documents_of(spec));
  }

  Passing pass_on(const Tensor& block) {
    const int n = around_.group.size(), rank = around_.group.rank();
    Passing passing{.sent = block, .received = at::empty_like(block)};
    passing.send = around_.group.send(passing.sent, (rank + 1) % n);
    passing.receive = around_.group.recv(passing.received, (rank + n - 1) % n);
    ++around_.messages;
    return passing;
  }

  static Tensor zeros(const Tensor& like, at::ScalarType dtype) {
    return at::zeros_like(like, like.options().dtype(dtype));
  }
};

}  // namespace

std::unique_ptr<Exchange> make_ring(const Surroundings& around) {
  return std::make_unique<Ring>(around);
}

}  // namespace assay::parallel
