// comm/thread and comm/fake: every collective against a loop; what mirrors and meta tensors give.
#include "thread.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>

#include <thread>

#include "collective_checks.h"
#include "fake.h"
#include "rank_processes.h"

namespace assay::comm {
namespace {

using namespace assay::test;  // NOLINT: helpers of this folder
using testing::HasSubstr;

/// Runs ranks as threads; the reports in rank order.
std::vector<std::string> run_threads(int n, const char* name, int64_t timeout_ns,
                                     const std::function<void(Communicator&)>& body) {
  std::vector<std::string> reports(static_cast<size_t>(n));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < n; ++rank) {
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      reports[static_cast<size_t>(rank)] = report_of([&] {
        ThreadBackend backend({});
        body(*backend.connect(group_spec("world", all_ranks(n), rank, name, timeout_ns)));
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return reports;
}

TEST(Thread, EveryCollectiveOfEveryDtypeEqualsALoop) {
  for (const int n : {2, 3}) {
    const auto reports = run_threads(n, "loop", 20'000'000'000, [](Communicator& group) {
      check_everything(group, kDtypes, {0, 1, 17, 1000});
    });
    for (const std::string& report : reports) EXPECT_EQ(report, "");
  }
}

TEST(Thread, AStalledRankIsNamed) {
  const auto reports = run_threads(3, "stall", 50'000'000, [](Communicator& group) {
    if (group.rank() == 1) return;
    group.barrier().wait();
  });
  EXPECT_THAT(reports[0], HasSubstr("rank 1 did not take part in barrier #1 of group 'world'"));
  EXPECT_EQ(reports[1], "");
}

TEST(Thread, ADisagreeingRankIsNamed) {
  const auto reports = run_threads(2, "disagree", 20'000'000'000, [](Communicator& group) {
    at::Tensor x = at::ones({group.rank() + 1});
    group.all_reduce(x).wait();
  });
  EXPECT_THAT(reports[0], HasSubstr("rank 1 disagrees with the others at all_reduce #1"));
  EXPECT_THAT(reports[0], HasSubstr("2 x fp32"));
}

TEST(Fake, PeersAreMirrors) {
  FakeBackend backend({});
  const auto group = backend.connect(group_spec("dp", all_ranks(64), 3, ""));
  at::Tensor x = at::full({2}, 1.5);
  group->all_reduce(x).wait();
  EXPECT_EQ(x[1].item<float>(), 96);
  at::Tensor whole = at::zeros({128});
  group->all_gather(whole, x).wait();
  EXPECT_TRUE(at::equal(whole, at::full({128}, 96.0)));
  group->reduce_scatter(x, whole).wait();
  EXPECT_EQ(x[0].item<float>(), 96 * 64);
}

TEST(Fake, MetaTensorsAreCountedAtAnyWorldSize) {
  FakeBackend backend({});
  const auto group = backend.connect(group_spec("fsdp", all_ranks(512), 511, ""));
  const at::Tensor shard =
      at::empty({1 << 20}, at::TensorOptions().dtype(at::kBFloat16).device(at::kMeta));
  at::Tensor whole = at::empty({512LL << 20}, shard.options());
  {
    const PhaseScope phase("forward");
    group->all_gather(whole, shard).wait();
  }
  const auto rows = group->traffic();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].phase, "forward");
  EXPECT_EQ(rows[0].dtype, "bf16");
  EXPECT_EQ(rows[0].payload_bytes, 1LL << 30);
  EXPECT_EQ(rows[0].wire_bytes, (1LL << 30) / 512 * 511);
}

}  // namespace
}  // namespace assay::comm
