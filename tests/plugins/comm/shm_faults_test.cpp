// comm/shm when a rank stalls, dies or calls something else: the others end in time and say who,
// in which call; nothing is left behind.
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <set>

#include "rank_processes.h"
#include "shm.h"

namespace assay::comm {
namespace {

using namespace assay::test;  // NOLINT: helpers of this folder
using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kTimeout = 300'000'000;  // ns; of the calls that are meant to fail

/// Ranks 0..3 make two common calls, then each runs `last`.
std::vector<Ending> four_ranks(int64_t timeout_ns, const std::function<void(Communicator&)>& last) {
  const ScratchFolder folder;
  return run_ranks(4, [&](int rank) {
    ShmBackend backend({});
    GroupSpec spec = group_spec("fsdp", {4, 5, 6, 7}, rank, folder.path());
    spec.timeout_ns = timeout_ns;
    const auto group = backend.connect(spec);
    at::Tensor x = at::ones({100});
    group->all_reduce(x).wait();
    group->barrier().wait();
    last(*group);
  });
}

void all_reduce(Communicator& group, int64_t numel = 100, at::ScalarType dtype = at::kFloat) {
  at::Tensor x = at::ones({numel}, dtype);
  group.all_reduce(x).wait();
}

std::set<std::string> shared_memory_files() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    if (entry.path().filename().string().find("assay") != std::string::npos) {
      names.insert(entry.path().string());
    }
  }
  return names;
}

TEST(ShmFaults, AStalledRankIsNamedWithTheCallAndItsNumber) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const auto endings = four_ranks(kTimeout, [&](Communicator& group) {
    if (group.rank() == 2) {  // stays alive and silent until the others have given up
      char given_up = 0;
      for (int others = 0; others < 3; ++others) ASSERT_EQ(read(ends[0], &given_up, 1), 1);
      return;
    }
    const std::string report = report_of([&] { all_reduce(group); });
    ASSERT_EQ(write(ends[1], "x", 1), 1);
    if (!report.empty()) throw std::runtime_error(report);
  });
  close(ends[0]);
  close(ends[1]);
  for (const size_t rank : {0, 1, 3}) {
    EXPECT_THAT(
        endings[rank].report,
        AllOf(HasSubstr("rank 6 did not take part in all_reduce #3 of group 'fsdp' in time"),
              HasSubstr("its last call is barrier #2")));
  }
}

TEST(ShmFaults, ADeadRankIsNamedLongBeforeTheTimeOut) {
  const auto endings = four_ranks(600'000'000'000, [](Communicator& group) {
    if (group.rank() == 1) raise(SIGKILL);
    all_reduce(group);
  });
  EXPECT_EQ(endings[1].signal, SIGKILL);
  for (const size_t rank : {0, 2, 3}) {
    EXPECT_THAT(endings[rank].report,
                HasSubstr("rank 5 died during all_reduce #3 of group 'fsdp'"));
  }
}

struct Deviation {
  const char* name;
  std::function<void(Communicator&)> call;
  const char* text;
};

class ShmDisagreement : public testing::TestWithParam<Deviation> {};

TEST_P(ShmDisagreement, NamesTheOddRankAndBothCalls) {
  const auto endings = four_ranks(20'000'000'000, [](Communicator& group) {
    group.rank() == 3 ? GetParam().call(group) : all_reduce(group);
  });
  for (const size_t rank : {0, 1, 2, 3}) {
    EXPECT_THAT(endings[rank].report,
                AllOf(HasSubstr("rank 7 disagrees with the others at"), HasSubstr(GetParam().text),
                      HasSubstr("all_reduce(sum) #3 of 100 x fp32")));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Calls, ShmDisagreement,
    testing::Values(Deviation{"size", [](Communicator& g) { all_reduce(g, 101); },
                              "all_reduce(sum) #3 of 101 x fp32"},
                    Deviation{"dtype", [](Communicator& g) { all_reduce(g, 100, at::kBFloat16); },
                              "all_reduce(sum) #3 of 100 x bf16"},
                    Deviation{"reduction",
                              [](Communicator& g) {
                                at::Tensor x = at::ones({100});
                                g.all_reduce(x, ReduceOp::max).wait();
                              },
                              "all_reduce(max) #3 of 100 x fp32"},
                    Deviation{"operation",
                              [](Communicator& g) {
                                at::Tensor out = at::ones({400});
                                g.all_gather(out, at::ones({100})).wait();
                              },
                              "all_gather #3 of 100 x fp32"},
                    Deviation{"barrier", [](Communicator& g) { g.barrier().wait(); },
                              "barrier #3"}),
    [](const auto& info) { return info.param.name; });

TEST(ShmFaults, SplitsThatDoNotFitNameTheSender) {
  const auto endings = four_ranks(20'000'000'000, [](Communicator& group) {
    const int64_t extra = group.rank() == 1 ? 1 : 0;  // to rank 0, which expects one row
    const std::vector<int64_t> out(4, 1);
    const std::vector<int64_t> in = {1 + extra, 1, 1, 1};
    at::Tensor received = at::ones({4, 2});
    group.all_to_all(received, at::ones({4 + extra, 2}), out, in).wait();
    if (group.rank() == 0) throw std::runtime_error("accepted a row too many");
  });
  EXPECT_THAT(endings[0].report,
              AllOf(HasSubstr("rank 5 disagrees with the others at all_to_all #3"),
                    HasSubstr("sends this rank 16 bytes, expected are 8")));
}

TEST(ShmFaults, AMessageOfAnotherSizeNamesItsSender) {
  const auto endings = four_ranks(20'000'000'000, [](Communicator& group) {
    at::Tensor x = at::ones({10});
    if (group.rank() == 0) group.send(at::ones({9}), 1).wait();
    if (group.rank() == 1) group.recv(x, 0).wait();
  });
  EXPECT_EQ(endings[0].report, "");
  EXPECT_THAT(endings[1].report,
              AllOf(HasSubstr("rank 4 disagrees"), HasSubstr("it sends send #1 of 9 x fp32")));
}

TEST(ShmFaults, ABrokenGroupRefusesFurtherCalls) {
  const auto endings = four_ranks(20'000'000'000, [](Communicator& group) {
    if (group.rank() == 3) return;  // leaves: the others lose a peer
    EXPECT_THROW(all_reduce(group), LostPeer);
    group.barrier().wait();
  });
  EXPECT_THAT(endings[0].report, HasSubstr("rank 7 died during all_reduce #3"));
}

TEST(ShmFaults, ARankThatNeverConnectsIsNamed) {
  const ScratchFolder folder;
  const auto endings = run_ranks(2, [&](int rank) {
    if (rank == 1) return;
    ShmBackend backend({});
    (void)backend.connect(group_spec("tp", {0, 1}, rank, folder.path(), kTimeout));
  });
  EXPECT_THAT(endings[0].report, HasSubstr("rank 1 did not take part in connect"));
}

TEST(ShmFaults, OptionsMustAgree) {
  const ScratchFolder folder;
  const auto endings = run_ranks(2, [&](int rank) {
    ShmOptions options;
    options.slots = 4 + rank;
    ShmBackend backend(options);
    (void)backend.connect(group_spec("tp", {0, 1}, rank, folder.path()));
  });
  EXPECT_THAT(endings[0].report, HasSubstr("rank 1 disagrees"));
  EXPECT_THAT(endings[0].report, HasSubstr("2/5/131072/16777216"));
}

TEST(ShmFaults, NothingIsLeftBehindByKilledRanks) {
  const auto before = shared_memory_files();
  const auto endings = four_ranks(20'000'000'000, [](Communicator&) { raise(SIGKILL); });
  for (const Ending& ending : endings) EXPECT_EQ(ending.signal, SIGKILL);
  EXPECT_EQ(shared_memory_files(), before);
}

}  // namespace
}  // namespace assay::comm
