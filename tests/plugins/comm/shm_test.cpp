// comm/shm between processes: results, order, several groups, asynchronous calls, counts.
#include "shm.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "collective_checks.h"
#include "rank_processes.h"

namespace assay::comm {
namespace {

using namespace assay::test;  // NOLINT: helpers of this folder

/// Small rounds and mailboxes, so that modest tensors take many rounds and wrap every ring.
ShmOptions small_rounds() {
  return {.chunk = {16 << 10}, .slots = 3, .mailbox = {64 << 10}, .spin = {10'000}};
}

void expect_all_well(const std::vector<Ending>& endings) {
  for (size_t rank = 0; rank < endings.size(); ++rank) {
    EXPECT_EQ(endings[rank].report, "") << "rank " << rank;
    EXPECT_EQ(endings[rank].signal, 0) << "rank " << rank;
  }
}

void run_world(int n, const ShmOptions& options, const std::function<void(Communicator&)>& body) {
  const ScratchFolder folder;
  expect_all_well(run_ranks(n, [&](int rank) {
    ShmBackend backend(options);
    const auto group = backend.connect(group_spec("world", all_ranks(n), rank, folder.path()));
    body(*group);
    group->barrier().wait();
  }));
}

TEST(Shm, EveryCollectiveOfEveryDtypeEqualsALoop) {
  for (const int n : {2, 3, 4}) {
    run_world(n, small_rounds(), [](Communicator& group) {
      check_everything(group, kDtypes, {0, 1, 3, 1000});
      check_everything(group, {at::kFloat, at::kBFloat16, at::kByte}, {17, 100'003});
    });
  }
}

TEST(Shm, DefaultOptionsServeLargeTensors) {
  run_world(2, {}, [](Communicator& group) {
    check_everything(group, {at::kFloat, at::kHalf}, {1'000'003});
  });
}

TEST(Shm, CallsUnderWayFinishInAnyOrderOfWaiting) {
  run_world(3, small_rounds(), [](Communicator& group) {
    std::vector<at::Tensor> tensors;
    std::vector<Work> calls;
    for (int i = 0; i < 8; ++i) {
      tensors.push_back(input_of(group.rank(), 30'000 + i, at::kFloat));
      calls.push_back(group.all_reduce(tensors.back()));
    }
    for (size_t i = calls.size(); i-- > 0;) {
      calls[i].wait();
      require_equal(
          tensors[i],
          reduced(inputs_of(3, 30'000 + static_cast<int64_t>(i), at::kFloat), ReduceOp::sum),
          "overlapped all_reduce");
    }
  });
}

TEST(Shm, PollAloneFinishesACall) {
  run_world(2, small_rounds(), [](Communicator& group) {
    at::Tensor x = input_of(group.rank(), 50'000, at::kDouble);
    Work call = group.all_reduce(x);
    while (!call.poll()) continue;
    require_equal(x, reduced(inputs_of(2, 50'000, at::kDouble), ReduceOp::sum), "polled");
  });
}

TEST(Shm, MessagesUpToTheMailboxLeaveWithoutTheirReceiver) {
  run_world(2, small_rounds(), [](Communicator& group) {
    at::Tensor x = at::ones({1000});
    if (group.rank() == 0) {
      group.send(x, 1).wait();  // rank 1 receives only after the barrier
      group.barrier().wait();
    } else {
      group.barrier().wait();
      group.recv(x, 0).wait();
    }
  });
}

/// 0 - 1 and 2 - 3 in rows, 0 - 2 and 1 - 3 in columns: each rank waits in one group while the
/// other group has a call under way, in an order that closes a circle unless waiting serves all
/// groups.
TEST(Shm, OverlappingGroupsServeEachOtherAndDoNotMix) {
  const ScratchFolder folder;
  expect_all_well(run_ranks(4, [&](int rank) {
    ShmBackend backend(small_rounds());
    const int row = rank / 2, column = rank % 2;
    const auto rows =
        backend.connect(group_spec("row", {2 * row, 2 * row + 1}, column, folder.path()));
    const auto columns =
        backend.connect(group_spec("column", {column, column + 2}, row, folder.path()));
    for (int i = 0; i < 20; ++i) {
      at::Tensor a = at::full({40'000}, rank + 1.0), b = at::full({40'000}, 10.0 * (rank + 1));
      Work first = rows->all_reduce(a);
      Work second = columns->all_reduce(b);
      (rank == 0 || rank == 3 ? first : second).wait();
      (rank == 0 || rank == 3 ? second : first).wait();
      require_equal(a, at::full({40'000}, 4.0 * row + 3.0), "row sum");
      require_equal(b, at::full({40'000}, 10.0 * (2 * column + 4)), "column sum");
    }
    rows->barrier().wait();
    columns->barrier().wait();
  }));
}

TEST(Shm, AGroupCanBeMadeAgain) {
  const ScratchFolder folder;
  expect_all_well(run_ranks(2, [&](int rank) {
    ShmBackend backend(small_rounds());
    for (int round = 0; round < 3; ++round) {
      const auto group = backend.connect(group_spec("tp", {0, 1}, rank, folder.path()));
      check_all_reduce(*group, 100, at::kFloat);
      group->barrier().wait();
    }
  }));
}

TEST(Shm, CountsAreTheClosedForms) {
  run_world(4, small_rounds(), [](Communicator& group) {
    at::Tensor s = at::zeros({1024}), whole = at::zeros({4096}), odd = at::zeros({3});
    group.all_reduce(s).wait();
    group.all_reduce(odd).wait();  // 2 * 12 * 3 / 4 = 18
    group.all_gather(whole, s).wait();
    group.reduce_scatter(s, whole).wait();
    const auto rows = group.traffic();
    const auto expect = [&](size_t i, const char* op, int64_t count, int64_t payload,
                            int64_t wire) {
      const Traffic& row = rows.at(i);
      if (row.op == op && row.count == count && row.payload_bytes == payload &&
          row.wire_bytes == wire && row.total_s >= row.exposed_s && row.exposed_s >= 0) {
        return;
      }
      throw std::runtime_error(std::string("wrong row for ") + op + ": " + row.op + " " +
                               std::to_string(row.count) + " " + std::to_string(row.payload_bytes) +
                               " " + std::to_string(row.wire_bytes));
    };
    expect(0, "all_reduce", 2, 4096 + 12, 2 * 4096 * 3 / 4 + 18);
    expect(1, "all_gather", 1, 16384, 16384 * 3 / 4);
    expect(2, "reduce_scatter", 1, 16384, 16384 * 3 / 4);
  });
}

TEST(Shm, RefusesOtherDevices) {
  ShmBackend backend({});
  GroupSpec spec = group_spec("tp", {0, 1}, 0, "/nowhere");
  spec.device = at::Device(at::kCUDA, 0);
  EXPECT_THROW((void)backend.connect(spec), Error);
}

}  // namespace
}  // namespace assay::comm
