// Rounds of all_reduce, all_gather, reduce_scatter, broadcast and barrier.
#include "exchange.h"

#include <algorithm>
#include <cstring>

#include "reduce.h"

namespace assay::comm {
namespace {

std::byte* bytes_of(const at::Tensor& tensor) {
  return static_cast<std::byte*>(const_cast<void*>(tensor.const_data_ptr()));
}

int64_t size_of(const at::Tensor& tensor) { return static_cast<int64_t>(tensor.nbytes()); }

void copy_bytes(std::byte* to, const std::byte* from, int64_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, static_cast<size_t>(bytes));
}

/// A run of bytes cut into rounds of `step`.
struct Cut {
  int64_t total = 0;
  int64_t step = kLine;

  int64_t rounds() const { return std::max<int64_t>(1, (total + step - 1) / step); }
  int64_t begin(int64_t round) const { return round * step; }
  int64_t size(int64_t round) const { return std::min(step, total - begin(round)); }
};

class Barrier final : public Exchange {
 public:
  int64_t rounds() const override { return 1; }
  void publish(int64_t, std::byte*) override {}
  void consume(int64_t, const Slots&) override {}
};

class AllGather final : public Exchange {
 public:
  AllGather(const Communicator::Request& request, int rank, int64_t slot_bytes)
      : in_(request.in), out_(request.out), rank_(rank), cut_{size_of(in_), slot_bytes} {}

  int64_t rounds() const override { return cut_.rounds(); }

  void publish(int64_t round, std::byte* slot) override {
    copy_bytes(slot, bytes_of(in_) + cut_.begin(round), cut_.size(round));
  }

  void consume(int64_t round, const Slots& slots) override {
    for (size_t peer = 0; peer < slots.size(); ++peer) {
      const bool own = peer == static_cast<size_t>(rank_);
      const std::byte* from = own ? bytes_of(in_) + cut_.begin(round) : slots[peer];
      std::byte* to = bytes_of(out_) + static_cast<int64_t>(peer) * cut_.total + cut_.begin(round);
      copy_bytes(to, from, cut_.size(round));
    }
  }

 private:
  const at::Tensor in_, out_;
  const int rank_;
  const Cut cut_;
};

class AllReduce final : public Exchange {
 public:
  AllReduce(const Communicator::Request& request, int rank, int64_t slot_bytes)
      : inout_(request.out),
        rank_(rank),
        reduce_(find_reduction(inout_.scalar_type(), request.reduce)),
        cut_{size_of(inout_), slot_bytes} {}

  int64_t rounds() const override { return cut_.rounds(); }

  void publish(int64_t round, std::byte* slot) override {
    copy_bytes(slot, bytes_of(inout_) + cut_.begin(round), cut_.size(round));
  }

  void consume(int64_t round, const Slots& slots) override {
    std::byte* own = bytes_of(inout_) + cut_.begin(round);
    std::vector<const void*> from(slots.begin(), slots.end());
    from[static_cast<size_t>(rank_)] = own;
    reduce_(own, from.data(), static_cast<int>(from.size()),
            cut_.size(round) / static_cast<int64_t>(inout_.element_size()));
  }

 private:
  const at::Tensor inout_;
  const int rank_;
  const Reduction reduce_;
  const Cut cut_;
};

/// A slot holds, one after the other, what each rank is to receive in the round.
class ReduceScatter final : public Exchange {
 public:
  ReduceScatter(const Communicator::Request& request, int rank, int ranks, int64_t slot_bytes)
      : in_(request.in),
        out_(request.out),
        rank_(rank),
        ranks_(ranks),
        reduce_(find_reduction(out_.scalar_type(), request.reduce)),
        cut_{size_of(out_), slot_bytes / ranks / kLine * kLine} {}

  int64_t rounds() const override { return cut_.rounds(); }

  void publish(int64_t round, std::byte* slot) override {
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer == rank_) continue;
      copy_bytes(slot + peer * cut_.step, part(peer, round), cut_.size(round));
    }
  }

  void consume(int64_t round, const Slots& slots) override {
    std::vector<const void*> from;
    for (int peer = 0; peer < ranks_; ++peer) {
      from.push_back(peer == rank_ ? part(rank_, round)
                                   : slots[static_cast<size_t>(peer)] + rank_ * cut_.step);
    }
    reduce_(bytes_of(out_) + cut_.begin(round), from.data(), ranks_,
            cut_.size(round) / static_cast<int64_t>(out_.element_size()));
  }

 private:
  const std::byte* part(int rank, int64_t round) const {
    return bytes_of(in_) + rank * cut_.total + cut_.begin(round);
  }

  const at::Tensor in_, out_;
  const int rank_, ranks_;
  const Reduction reduce_;
  const Cut cut_;
};

class Broadcast final : public Exchange {
 public:
  Broadcast(const Communicator::Request& request, int rank, int64_t slot_bytes)
      : inout_(request.out),
        root_(request.peer),
        own_(rank == root_),
        cut_{size_of(inout_), slot_bytes} {}

  int64_t rounds() const override { return cut_.rounds(); }

  void publish(int64_t round, std::byte* slot) override {
    if (own_) copy_bytes(slot, at(round), cut_.size(round));
  }

  void consume(int64_t round, const Slots& slots) override {
    if (own_) return;
    copy_bytes(at(round), slots[static_cast<size_t>(root_)], cut_.size(round));
  }

 private:
  std::byte* at(int64_t round) const { return bytes_of(inout_) + cut_.begin(round); }

  const at::Tensor inout_;
  const int root_;
  const bool own_;
  const Cut cut_;
};

}  // namespace

std::unique_ptr<Exchange> make_exchange(const Communicator::Request& request, int rank, int ranks,
                                        int64_t slot_bytes) {
  switch (request.op) {
    case Collective::all_reduce:
      return std::make_unique<AllReduce>(request, rank, slot_bytes);
    case Collective::all_gather:
      return std::make_unique<AllGather>(request, rank, slot_bytes);
    case Collective::reduce_scatter:
      return std::make_unique<ReduceScatter>(request, rank, ranks, slot_bytes);
    case Collective::all_to_all:
      return make_all_to_all(request, rank, ranks, slot_bytes);
    case Collective::broadcast:
      return std::make_unique<Broadcast>(request, rank, slot_bytes);
    default:
      return std::make_unique<Barrier>();
  }
}

}  // namespace assay::comm
