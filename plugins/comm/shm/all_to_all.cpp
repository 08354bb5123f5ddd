// all_to_all: a slot holds a table of sizes, then what each rank is to receive in the round.
#include <algorithm>
#include <cstring>

#include "exchange.h"

namespace assay::comm {
namespace {

int64_t row_bytes(const at::Tensor& tensor) {
  int64_t bytes = static_cast<int64_t>(tensor.element_size());
  for (const int64_t size : tensor.sizes().slice(1)) bytes *= size;
  return bytes;
}

/// Byte sizes and offsets of the parts of one tensor.
struct Parts {
  std::vector<int64_t> size;
  std::vector<int64_t> offset;

  Parts(const std::vector<int64_t>& splits, int64_t bytes_per_row) {
    int64_t at = 0;
    for (const int64_t rows : splits) {
      offset.push_back(at);
      size.push_back(rows * bytes_per_row);
      at += size.back();
    }
  }
};

class AllToAll final : public Exchange {
 public:
  AllToAll(const Communicator::Request& request, int rank, int ranks, int64_t slot_bytes)
      : in_(request.in),
        out_(request.out),
        send_(request.in_splits, row_bytes(in_)),
        receive_(request.out_splits, row_bytes(out_)),
        rank_(rank),
        ranks_(ranks),
        table_bytes_((ranks * int64_t{8} + kLine - 1) / kLine * kLine),
        step_((slot_bytes - table_bytes_) / ranks / kLine * kLine),
        largest_(*std::max_element(send_.size.begin(), send_.size.end())) {}

  int64_t rounds() const override { return std::max<int64_t>(1, (largest_ + step_ - 1) / step_); }
  bool is_final() const override { return final_; }

  /// Every slot starts with what its rank sends to each other, so that all learn the largest part.
  void publish(int64_t round, std::byte* slot) override {
    std::memcpy(slot, send_.size.data(), send_.size.size() * sizeof(int64_t));
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer != rank_) copy(slot_part(slot, peer), in_at(peer, round), left(send_, peer, round));
    }
  }

  void consume(int64_t round, const Slots& slots) override {
    for (int peer = 0; peer < ranks_; ++peer) {
      const std::byte* slot = slots[static_cast<size_t>(peer)];
      if (slot != nullptr && round == 0) learn(peer, slot);
    }
    final_ = true;
    if (misfit_ >= 0) return;
    for (int peer = 0; peer < ranks_; ++peer) {
      const std::byte* from =
          peer == rank_ ? in_at(rank_, round) : slot_part(slots[static_cast<size_t>(peer)], rank_);
      copy(out_at(peer, round), from, left(receive_, peer, round));
    }
  }

  int misfit() const override { return misfit_; }
  std::string misfit_detail() const override {
    return "it sends this rank " + std::to_string(misfit_bytes_) + " bytes, expected are " +
           std::to_string(receive_.size[static_cast<size_t>(misfit_)]);
  }

 private:
  static void copy(std::byte* to, const std::byte* from, int64_t bytes) {
    if (bytes > 0 && to != from) std::memcpy(to, from, static_cast<size_t>(bytes));
  }

  void learn(int peer, const std::byte* slot) {
    std::vector<int64_t> sizes(static_cast<size_t>(ranks_));
    std::memcpy(sizes.data(), slot, sizes.size() * sizeof(int64_t));
    largest_ = std::max(largest_, *std::max_element(sizes.begin(), sizes.end()));
    const int64_t sent = sizes[static_cast<size_t>(rank_)];
    if (misfit_ >= 0 || sent == receive_.size[static_cast<size_t>(peer)]) return;
    misfit_ = peer;
    misfit_bytes_ = sent;
  }

  template <class Byte>
  Byte* slot_part(Byte* slot, int rank) const {
    return slot + table_bytes_ + rank * step_;
  }
  int64_t left(const Parts& parts, int rank, int64_t round) const {
    return std::clamp<int64_t>(parts.size[static_cast<size_t>(rank)] - round * step_, 0, step_);
  }
  const std::byte* in_at(int rank, int64_t round) const {
    return static_cast<const std::byte*>(in_.const_data_ptr()) +
           send_.offset[static_cast<size_t>(rank)] + round * step_;
  }
  std::byte* out_at(int rank, int64_t round) const {
    return static_cast<std::byte*>(out_.mutable_data_ptr()) +
           receive_.offset[static_cast<size_t>(rank)] + round * step_;
  }

  const at::Tensor in_, out_;
  const Parts send_, receive_;
  const int rank_, ranks_;
  const int64_t table_bytes_, step_;
  int64_t largest_;
  bool final_ = false;
  int misfit_ = -1;
  int64_t misfit_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Exchange> make_all_to_all(const Communicator::Request& request, int rank, int ranks,
                                          int64_t slot_bytes) {
  return std::make_unique<AllToAll>(request, rank, ranks, slot_bytes);
}

}  // namespace assay::comm
