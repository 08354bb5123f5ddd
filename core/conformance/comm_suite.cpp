// Communicators: each collective against a loop over what the ranks put in.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "core/conformance/ranks.h"

namespace assay::conformance {
namespace {

constexpr int64_t kSizes[] = {0, 1, 7, 1000, 100'003};
constexpr at::ScalarType kDtypes[] = {at::kDouble, at::kFloat, at::kBFloat16,
                                      at::kHalf,   at::kLong,  at::kInt};

/// Whole numbers small enough that every dtype adds them exactly in any order.
Tensor put_in(int rank, int64_t numel, at::ScalarType dtype) {
  return at::arange(numel, at::kLong).add(rank * 5).remainder(17).to(dtype);
}

void expect_same(const Tensor& got, const Tensor& want, const std::string& what) {
  if (got.sizes() == want.sizes() && at::equal(got, want)) return;
  throw Error(what + " of " + std::to_string(want.numel()) + " x " +
              c10::toString(want.scalar_type()) + " is wrong");
}

Tensor summed(int ranks, int64_t numel, at::ScalarType dtype) {
  Tensor total = at::zeros({numel}, at::kDouble);
  for (int rank = 0; rank < ranks; ++rank) total.add_(put_in(rank, numel, at::kDouble));
  return total.to(dtype);
}

void try_all_reduce(Communicator& group, int64_t numel, at::ScalarType dtype) {
  Tensor x = put_in(group.rank(), numel, dtype);
  group.all_reduce(x).wait();
  expect_same(x, summed(group.size(), numel, dtype), "all_reduce(sum)");
  x = at::full({numel}, group.rank() + 1, dtype);
  group.all_reduce(x, ReduceOp::max).wait();
  expect_same(x, at::full({numel}, group.size(), dtype), "all_reduce(max)");
  x = at::full({numel}, group.rank() + 1, dtype);
  group.all_reduce(x, ReduceOp::min).wait();
  expect_same(x, at::full({numel}, 1, dtype), "all_reduce(min)");
}

void try_gather_and_scatter(Communicator& group, int64_t numel, at::ScalarType dtype) {
  Tensor whole = at::empty({numel * group.size()}, dtype);
  group.all_gather(whole, put_in(group.rank(), numel, dtype)).wait();
  std::vector<Tensor> parts;
  for (int rank = 0; rank < group.size(); ++rank) parts.push_back(put_in(rank, numel, dtype));
  expect_same(whole, at::cat(parts), "all_gather");
  Tensor part = at::empty({numel}, dtype);
  group.reduce_scatter(part, put_in(group.rank(), numel * group.size(), dtype)).wait();
  expect_same(
      part,
      summed(group.size(), numel * group.size(), dtype).narrow(0, group.rank() * numel, numel),
      "reduce_scatter");
}

void try_moves(Communicator& group, int64_t numel, at::ScalarType dtype) {
  const int n = group.size(), me = group.rank();
  Tensor x = put_in(me, numel, dtype);
  group.broadcast(x, n - 1).wait();
  expect_same(x, put_in(n - 1, numel, dtype), "broadcast");
  Tensor out = at::empty({numel * n}, dtype);
  group
      .all_to_all(out,
                  at::cat(std::vector<Tensor>(static_cast<size_t>(n), put_in(me, numel, dtype))))
      .wait();
  std::vector<Tensor> parts;
  for (int rank = 0; rank < n; ++rank) parts.push_back(put_in(rank, numel, dtype));
  expect_same(out, at::cat(parts), "all_to_all");
  Tensor from = at::empty({numel}, dtype);
  Work receive = group.recv(from, (me + n - 1) % n);
  Work send = group.send(put_in(me, numel, dtype), (me + 1) % n);
  send.wait();
  receive.wait();
  expect_same(from, put_in((me + n - 1) % n, numel, dtype), "send and recv");
}

bool has_no_peers(const Subject& s) { return s.entry->manifest.name == "fake"; }
bool has_no_device(const Subject& s) {
  for (const std::string& need : s.entry->manifest.needs) {
    if (need == "device.cuda") return true;
  }
  return false;
}

#define SKIP_WITHOUT_PEERS(s)                                                   \
  if (has_no_peers(s)) GTEST_SKIP() << "a backend without peers moves nothing"; \
  if (has_no_device(s)) GTEST_SKIP() << "needs device.cuda; the suites run on the CPU"

void collectives_equal_a_loop(const Subject& s) {
  SKIP_WITHOUT_PEERS(s);
  for (const int size : {2, 3}) {
    EXPECT_EQ(on_ranks(s, size,
                       [](Communicator& group) {
                         for (const at::ScalarType dtype : kDtypes) {
                           for (const int64_t numel : kSizes) {
                             try_all_reduce(group, numel, dtype);
                             try_gather_and_scatter(group, numel, dtype);
                             try_moves(group, numel, dtype);
                           }
                         }
                         group.barrier().wait();
                       }),
              "")
        << size << " ranks";
  }
}

void counts_the_closed_forms(const Subject& s) {
  SKIP_WITHOUT_PEERS(s);
  EXPECT_EQ(on_ranks(s, 2,
                     [](Communicator& group) {
                       Tensor x = at::zeros({1000}, at::kFloat);
                       group.all_reduce(x).wait();
                       const auto rows = group.traffic();
                       if (rows.size() != 1 || rows[0].payload_bytes != 4000 ||
                           rows[0].wire_bytes != 4000) {  // 2 S (n - 1) / n with n = 2
                         throw Error("4000 bytes of payload and of wire were due");
                       }
                     }),
            "");
}

void two_groups_do_not_mix(const Subject& s) {
  SKIP_WITHOUT_PEERS(s);
  EXPECT_EQ(on_two_groups(s, 2,
                          [](Communicator& first, Communicator& second) {
                            Tensor a = at::full({1000}, first.rank() + 1, at::kFloat);
                            Tensor b = at::full({1000}, 10 * (second.rank() + 1), at::kFloat);
                            Work in_first = first.all_reduce(a);
                            Work in_second = second.all_reduce(b);
                            in_second.wait();
                            in_first.wait();
                            expect_same(a, at::full({1000}, 3, at::kFloat), "first group");
                            expect_same(b, at::full({1000}, 30, at::kFloat), "second group");
                          }),
            "");
}

void a_missing_peer_is_named_in_time(const Subject& s) {
  SKIP_WITHOUT_PEERS(s);
  constexpr int64_t kShort_ns = 500'000'000;
  const std::string complaint = on_ranks(
      s, 2,
      [](Communicator& group) {
        Tensor x = at::zeros({10}, at::kFloat);
        group.all_reduce(x).wait();
        if (group.rank() == 0) group.all_reduce(x).wait();  // rank 1 never comes
      },
      kShort_ns);
  EXPECT_NE(complaint.find("all_reduce"), std::string::npos) << "got: " << complaint;
  EXPECT_NE(complaint.find("1"), std::string::npos) << "names the rank; got: " << complaint;
}

void works_without_peers_on_meta(const Subject& s) {
  if (!has_no_peers(s)) GTEST_SKIP() << "only for backends without peers";
  GroupSpec spec;
  spec.name = "tp";
  for (int i = 0; i < 4096; ++i) spec.ranks.push_back(i);
  spec.index = 4000;
  spec.device = at::kMeta;
  const auto group = s.create<CommBackend>()->connect(spec);
  Tensor whole = at::empty({4096 * 8}, at::TensorOptions(at::kFloat).device(at::kMeta));
  group->all_gather(whole, whole.narrow(0, 0, 8)).wait();
  ASSERT_EQ(group->traffic().size(), 1u);
  EXPECT_EQ(group->traffic()[0].count, 1);
}

}  // namespace

std::vector<Case> comm_cases() {
  constexpr Kind k = Kind::comm;
  return {{k, "CollectivesEqualALoop", collectives_equal_a_loop},
          {k, "CountsTheClosedForms", counts_the_closed_forms},
          {k, "TwoGroupsDoNotMix", two_groups_do_not_mix},
          {k, "AMissingPeerIsNamedInTime", a_missing_peer_is_named_in_time},
          {k, "WorksWithoutPeersOnMeta", works_without_peers_on_meta}};
}

}  // namespace assay::conformance
