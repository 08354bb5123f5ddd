// Context parallelism by heads, arXiv:2309.14509: all_to_all from a part of the sequence with all
// heads to the whole sequence with a part of the heads, plain attention, and back.
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <string>
#include <vector>

#include "assay/collectives.h"
#include "assay/error.h"
#include "exchange.h"

namespace assay::parallel {
namespace {

class Ulysses final : public Exchange {
 public:
  using Exchange::Exchange;

  // lse stays with the heads that this rank does not have: nothing asks for it.
  AttentionPart forward(const Operands& x, const AttentionSpec& spec, Tensors& saved) override {
    check_heads(x, spec);
    const Sequence sequence = around_.sequence(x.q.size(1));
    const Operands own{to_heads(x.q, sequence), to_heads(x.k, sequence), to_heads(x.v, sequence)};
    const Pieces pieces = pieces_of(sequence, spec);
    around_.work += work_of(pieces, x.q.size(0));
    const AttentionPart part = attend(around_.next, own, pieces, spec);
    saved = {own.q, own.k, own.v, part.out, part.lse};
    return {to_sequence(part.out, sequence), {}};
  }

  AttentionGradients backward(const Tensors& saved, const Tensor& dout,
                              const AttentionSpec& spec) override {
    const Operands own{saved[0], saved[1], saved[2]};
    const Sequence sequence = around_.sequence(dout.size(1));
    const AttentionGradients sums{at::zeros_like(own.q), at::zeros_like(own.k),
                                  at::zeros_like(own.v)};
    add_gradients(around_.next, to_heads(dout, sequence), own, pieces_of(sequence, spec),
                  {saved[3], saved[4]}, spec, sums);
    return {to_sequence(sums.dq, sequence), to_sequence(sums.dk, sequence),
            to_sequence(sums.dv, sequence)};
  }

 private:
  void check_heads(const Operands& x, const AttentionSpec& spec) const {
    const int64_t heads = x.q.size(2) / spec.head_dim, kv_heads = x.k.size(2) / spec.head_dim;
    if (heads % around_.ranks() == 0 && kv_heads % around_.ranks() == 0) return;
    throw Error("[R-CPHEADS] " + std::to_string(heads) + " heads and " + std::to_string(kv_heads) +
                    " kv_heads cannot be split over " + std::to_string(around_.ranks()) +
                    " cp ranks",
                "set parallel.cp.method to all_gather or ring");
  }

  // All tokens, in the order of the sequence, as one rank would have them.
  static Pieces pieces_of(const Sequence& sequence, const AttentionSpec& spec) {
    return pieces_of_row({sequence.length(), 1, false}, 0, documents_of(spec));
  }

  Tensor exchanged(const Tensor& parts) {
    ++around_.messages;
    const std::vector<int64_t> one_each(static_cast<size_t>(around_.ranks()), 1);
    return all_to_all(parts, around_.group, one_each, one_each);
  }

  /// (B, tau, n * W) -> (B, T, W): of every rank's tokens the heads of this rank.
  Tensor to_heads(const Tensor& x, const Sequence& sequence) {
    const Tensor parts = x.view({x.size(0), x.size(1), around_.ranks(), -1}).permute({2, 0, 1, 3});
    return sequence.whole(exchanged(parts.contiguous()));
  }

  /// (B, T, W) -> (B, tau, n * W), the inverse and the transpose of to_heads().
  Tensor to_sequence(const Tensor& x, const Sequence& sequence) {
    const Tensor parts =
        at::empty({around_.ranks(), x.size(0), sequence.local(), x.size(2)}, x.options());
    sequence.scatter(x, parts);
    return exchanged(parts).permute({1, 2, 0, 3}).flatten(2);
  }
};

}  // namespace

std::unique_ptr<Exchange> make_ulysses(const Surroundings& around) {
  return std::make_unique<Ulysses>(around);
}

}  // namespace assay::parallel
