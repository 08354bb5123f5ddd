// comm/gloo between processes: moves every dtype exactly, reduces within rounding, names culprits.
#include "gloo.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <signal.h>

#include "collective_checks.h"
#include "rank_processes.h"

namespace assay::comm {
namespace {

using namespace assay::test;  // NOLINT: helpers of this folder
using testing::HasSubstr;

std::vector<Ending> gloo_ranks(int n, int64_t timeout_ns,
                               const std::function<void(Communicator&)>& body) {
  const ScratchFolder folder;
  return run_ranks(n, [&](int rank) {
    GlooBackend backend({});
    const auto group =
        backend.connect(group_spec("world", all_ranks(n), rank, folder.path(), timeout_ns));
    body(*group);
  });
}

/// Two ranks: a sum of two is the same in any order, so even reductions are exact.
TEST(Gloo, EveryCollectiveOfTwoRanksEqualsALoop) {
  const auto endings = gloo_ranks(2, 20'000'000'000, [](Communicator& group) {
    check_everything(group, {at::kFloat, at::kDouble, at::kLong, at::kBool}, {0, 1, 1000});
    for (const at::ScalarType dtype : kDtypes) {
      check_all_gather(group, 17, dtype);
      check_all_to_all(group, 17, dtype);
      check_broadcast(group, 17, dtype);
      check_messages(group, 17, dtype);
    }
    group.barrier().wait();
  });
  for (const Ending& ending : endings) EXPECT_EQ(ending.report, "");
}

TEST(Gloo, SumsOfThreeRanksAreWithinRounding) {
  const auto endings = gloo_ranks(3, 20'000'000'000, [](Communicator& group) {
    const auto inputs = inputs_of(3, 1000, at::kFloat);
    at::Tensor x = inputs[static_cast<size_t>(group.rank())].clone();
    group.all_reduce(x).wait();
    if (!at::allclose(x, reduced(inputs, ReduceOp::sum), 0, 1e-5)) {  // 3 additions below 16
      throw std::runtime_error("a wrong sum");
    }
    const Traffic row = group.traffic().at(0);
    if (row.payload_bytes != 4000 || row.wire_bytes != 2 * 4000 * 2 / 3) {
      throw std::runtime_error("wrong bytes");
    }
    group.barrier().wait();
  });
  for (const Ending& ending : endings) EXPECT_EQ(ending.report, "");
}

TEST(Gloo, RefusesToReduceWhatC10dCannot) {
  const auto endings = gloo_ranks(2, 20'000'000'000, [](Communicator& group) {
    at::Tensor x = at::ones({4}).to(at::kFloat8_e4m3fn);
    group.all_reduce(x).wait();
  });
  EXPECT_THAT(endings[0].report, HasSubstr("cannot reduce float8_e4m3"));
}

TEST(Gloo, ADeadRankIsNamed) {
  const auto endings = gloo_ranks(3, 5'000'000'000, [](Communicator& group) {
    at::Tensor x = at::ones({4});
    group.all_reduce(x).wait();
    if (group.rank() == 2) raise(SIGKILL);
    group.all_reduce(x).wait();
  });
  EXPECT_EQ(endings[2].signal, SIGKILL);
  // gloo tells a survivor only that a connection is gone: it may name the other survivor, which
  // ended because of the same death, or see no sign of rank 2 but its silence.
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_THAT(endings[static_cast<size_t>(rank)].report,
                HasSubstr("all_reduce #2 of group 'world'"));
  }
}

}  // namespace
}  // namespace assay::comm
