// Exchange: one way to bring queries and keys of different ranks together.
#pragma once

#include <memory>

#include "assay/communicator.h"
#include "partial.h"

namespace assay::parallel {

/// What an exchange works with; one per rank.
struct Surroundings {
  Ops& next;              ///< the kernels, on plain local tensors
  Communicator& group;    ///< cp
  at::ScalarType reduce;  ///< dK and dV travel and are summed in it
  bool headtail;
  int64_t& messages;  ///< counter: what this rank has sent
  int64_t& work;      ///< counter: Piece::work() of the forwards

  int64_t ranks() const { return group.size(); }
  int64_t rank() const { return group.rank(); }
  Sequence sequence(int64_t local) const { return {local * ranks(), ranks(), headtail}; }
};

inline const Documents& documents_of(const AttentionSpec& spec) {
  static const Documents none;
  return spec.documents ? *spec.documents : none;
}

class Exchange {
 public:
  explicit Exchange(const Surroundings& around) : around_(around) {}
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// x: this rank's tokens. Without autograd; `saved` is what backward() gets.
  virtual AttentionPart forward(const Operands& x, const AttentionSpec& spec, Tensors& saved) = 0;
  virtual AttentionGradients backward(const Tensors& saved, const Tensor& dout,
                                      const AttentionSpec& spec) = 0;

 protected:
  Surroundings around_;
};

std::unique_ptr<Exchange> make_all_gather(const Surroundings& around);
std::unique_ptr<Exchange> make_ring(const Surroundings& around);
std::unique_ptr<Exchange> make_ulysses(const Surroundings& around);

}  // namespace assay::parallel
