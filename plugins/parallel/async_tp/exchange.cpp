// Peers are taken by distance, so that at any moment every rank sends to another one.
#include "exchange.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <utility>

#include "assay/error.h"

namespace assay::parallel {
namespace {

constexpr int64_t kDim = 1;

struct Message {
  Piece piece{};
  Tensor tensor{};
  Work work{};
};

Piece piece_of(int rank, int64_t index, int64_t part, int64_t pieces) {
  const int64_t size = part / pieces;
  return {rank, index, rank * part + index * size, size};
}

int peer_at(const Communicator& group, int distance) {
  return (group.rank() + distance) % group.size();
}

at::ScalarType wide(at::ScalarType dtype) {
  return dtype == at::kDouble ? at::kDouble : at::kFloat;
}

void check_divides(int64_t part, int64_t pieces) {
  ASSAY_CHECK(part % pieces == 0, "async_tp: " + std::to_string(pieces) + " pieces do not divide " +
                                      std::to_string(part) + " tokens");
}

}  // namespace

void gather_in_pieces(const Tensor& part, int64_t pieces, Communicator& group,
                      const std::function<void(const Piece&, const Tensor&)>& use) {
  check_divides(part.size(kDim), pieces);
  std::vector<Message> coming, going;
  for (int64_t i = 0; i < pieces; ++i) {
    const Piece own = piece_of(group.rank(), i, part.size(kDim), pieces);
    const Tensor mine = part.narrow(kDim, i * own.size, own.size).contiguous();
    for (int d = 1; d < group.size(); ++d) {
      going.push_back({own, mine, group.send(mine, peer_at(group, d))});
      Tensor theirs = at::empty_like(mine);
      const int from = peer_at(group, group.size() - d);
      Work work = group.recv(theirs, from);
      coming.push_back({piece_of(from, i, part.size(kDim), pieces), theirs, std::move(work)});
    }
    use(own, mine);
  }
  for (Message& m : coming) {
    m.work.wait();
    use(m.piece, m.tensor);
  }
  for (Message& m : going) m.work.wait();
}

Tensor scatter_in_pieces(int64_t part_size, int64_t pieces, Communicator& group,
                         const std::function<Tensor(const Piece&)>& make) {
  check_divides(part_size, pieces);
  std::vector<Message> coming, going;
  Tensors sums;
  for (int64_t i = 0; i < pieces; ++i) {
    for (int d = 1; d < group.size(); ++d) {
      const int to = peer_at(group, d);
      const Tensor share = make(piece_of(to, i, part_size, pieces)).contiguous();
      going.push_back({{}, share, group.send(share, to)});
      Tensor theirs = at::empty_like(share);
      const int from = peer_at(group, group.size() - d);
      Work work = group.recv(theirs, from);
      coming.push_back({piece_of(from, i, part_size, pieces), theirs, std::move(work)});
    }
    sums.push_back(make(piece_of(group.rank(), i, part_size, pieces)));
  }
  for (Message& m : coming) m.work.wait();
  for (int64_t i = 0; i < pieces; ++i) {
    const Tensor own = sums[static_cast<size_t>(i)];
    Tensor sum;
    for (int r = 0; r < group.size(); ++r) {
      Tensor share = own;
      for (const Message& m : coming) {
        if (m.piece.rank == r && m.piece.index == i) share = m.tensor;
      }
      sum = sum.defined() ? sum.add(share) : share.to(wide(share.scalar_type()), false, true);
    }
    sums[static_cast<size_t>(i)] = sum.to(own.scalar_type());
  }
  for (Message& m : going) m.work.wait();
  return at::cat(sums, kDim);
}

}  // namespace assay::parallel
