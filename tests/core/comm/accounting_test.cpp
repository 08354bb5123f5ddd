// The front of a communicator: closed forms of the bytes, phases, checks, time-outs, groups of one.
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include "assay/communicator.h"

namespace assay {
namespace {

using testing::HasSubstr;

/// Never finishes: its peer 1 is silent.
class Endless final : public Operation {
 public:
  explicit Endless(PeerFault fault) : fault_(std::move(fault)) {}
  bool advance(int64_t) override { return false; }
  PeerFault stalled() const override { return fault_; }

 private:
  PeerFault fault_;
};

/// Finishes every call at once, or none.
class Scripted final : public Communicator {
 public:
  explicit Scripted(int n, int index = 0, int64_t timeout_ns = 1'000'000)
      : Communicator({.name = "tp", .ranks = ranks(n), .index = index, .timeout_ns = timeout_ns}) {}
  bool endless = false;
  std::vector<uint64_t> sequences;

 protected:
  std::unique_ptr<Operation> do_start(const Request& request) override {
    sequences.push_back(request.sequence);
    if (!endless) return nullptr;
    return std::make_unique<Endless>(fault(PeerFault::Cause::stalled, 1, request, "asleep"));
  }

 private:
  static std::vector<int> ranks(int n) {
    std::vector<int> result;
    for (int i = 0; i < n; ++i) result.push_back(10 + i);
    return result;
  }
};

const Traffic& only_row(const std::vector<Traffic>& rows) {
  EXPECT_EQ(rows.size(), 1u);
  return rows.front();
}

struct Form {
  const char* name;
  std::function<void(Communicator&)> call;
  int64_t payload;
  int64_t wire;
};

class ClosedForm : public testing::TestWithParam<Form> {};

TEST_P(ClosedForm, OfFourRanks) {
  Scripted group(4);
  GetParam().call(group);
  const auto rows = group.traffic();
  EXPECT_EQ(only_row(rows).payload_bytes, GetParam().payload);
  EXPECT_EQ(only_row(rows).wire_bytes, GetParam().wire);
  EXPECT_EQ(only_row(rows).count, 1);
  EXPECT_EQ(only_row(rows).op, std::string(GetParam().name).substr(0, rows[0].op.size()));
}

at::Tensor bf16(int64_t rows) { return at::zeros({rows, 5}, at::kBFloat16); }  // 10 bytes a row

INSTANTIATE_TEST_SUITE_P(
    Bytes, ClosedForm,
    testing::Values(Form{"all_reduce",
                         [](Communicator& g) {
                           auto x = bf16(8);
                           g.all_reduce(x).wait();
                         },
                         80, 120},
                    Form{"all_gather",
                         [](Communicator& g) {
                           auto y = bf16(8);
                           g.all_gather(y, bf16(2)).wait();
                         },
                         80, 60},
                    Form{"reduce_scatter",
                         [](Communicator& g) {
                           auto y = bf16(2);
                           g.reduce_scatter(y, bf16(8)).wait();
                         },
                         80, 60},
                    Form{"all_to_all_uniform",
                         [](Communicator& g) {
                           auto y = bf16(8);
                           g.all_to_all(y, bf16(8)).wait();
                         },
                         80, 60},
                    Form{"all_to_all_uneven",
                         [](Communicator& g) {
                           auto y = bf16(4);
                           const std::vector<int64_t> out = {3, 0, 1, 0}, in = {3, 1, 0, 2};
                           g.all_to_all(y, bf16(6), out, in).wait();
                         },
                         60, 30},
                    Form{"broadcast_root",
                         [](Communicator& g) {
                           auto x = bf16(1);
                           g.broadcast(x, 0).wait();
                         },
                         10, 30},
                    Form{"broadcast_other",
                         [](Communicator& g) {
                           auto x = bf16(1);
                           g.broadcast(x, 2).wait();
                         },
                         10, 0},
                    Form{"send", [](Communicator& g) { g.send(bf16(1), 3).wait(); }, 10, 10},
                    Form{"recv",
                         [](Communicator& g) {
                           auto x = bf16(1);
                           g.recv(x, 3).wait();
                         },
                         10, 0},
                    Form{"barrier", [](Communicator& g) { g.barrier().wait(); }, 0, 0}),
    [](const auto& info) { return info.param.name; });

TEST(Accounting, SumsBeforeItRounds) {
  Scripted group(3);
  at::Tensor x = at::zeros({1});  // 2 * 4 * 2 / 3 bytes each
  for (int i = 0; i < 3; ++i) group.all_reduce(x).wait();
  EXPECT_EQ(only_row(group.traffic()).wire_bytes, 16);
}

TEST(Accounting, PhasesNestAndKeepApart) {
  Scripted group(2);
  at::Tensor x = at::zeros({2});
  group.all_reduce(x).wait();
  {
    const PhaseScope backward("backward");
    group.all_reduce(x).wait();
    {
      const PhaseScope control("control");
      group.all_reduce(x).wait();
    }
    group.all_reduce(x).wait();
  }
  const auto rows = group.traffic();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].phase, "other");
  EXPECT_EQ(rows[1].phase, "backward");
  EXPECT_EQ(rows[1].count, 2);
  EXPECT_EQ(rows[2].phase, "control");
  EXPECT_NEAR(group.exposed_s(), rows[0].exposed_s + rows[1].exposed_s, 1e-12);
  group.reset_traffic();
  EXPECT_TRUE(group.traffic().empty());
  EXPECT_EQ(group.exposed_s(), 0);
}

TEST(Accounting, NumbersCollectivesTogetherAndMessagesPerPairAndDirection) {
  Scripted group(3);
  at::Tensor x = at::zeros({1});
  group.barrier().wait();
  group.send(x, 1).wait();
  group.send(x, 2).wait();
  group.recv(x, 1).wait();
  group.all_reduce(x).wait();
  group.send(x, 1).wait();
  EXPECT_THAT(group.sequences, testing::ElementsAre(1, 1, 1, 1, 2, 2));
}

TEST(Front, NamesTheStalledPeerAfterTheTimeOutAndRefusesFurtherCalls) {
  Scripted group(2);
  group.endless = true;
  Work call = group.barrier();
  EXPECT_FALSE(call.poll());
  try {
    call.wait();
    FAIL() << "waited for ever";
  } catch (const PeerError& error) {
    EXPECT_STREQ(error.what(),
                 "rank 11 did not take part in barrier #1 of group 'tp' in time: asleep");
    EXPECT_EQ(error.fault().rank, 11);
  }
  EXPECT_THROW(group.barrier().wait(), PeerError);
}

struct Misuse {
  const char* name;
  std::function<void(Communicator&)> call;
  const char* text;
};

class FrontRefuses : public testing::TestWithParam<Misuse> {};

TEST_P(FrontRefuses, WithTheReason) {
  Scripted group(4, 1);
  try {
    GetParam().call(group);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(GetParam().text));
    EXPECT_THAT(error.what(), HasSubstr("in group 'tp' (rank 1 of 4)"));
  }
  EXPECT_TRUE(group.sequences.empty());
  EXPECT_TRUE(group.traffic().empty());
}

INSTANTIATE_TEST_SUITE_P(
    Calls, FrontRefuses,
    testing::Values(Misuse{"undefined",
                           [](Communicator& g) {
                             at::Tensor x;
                             g.all_reduce(x).wait();
                           },
                           "inout is undefined"},
                    Misuse{"strided",
                           [](Communicator& g) {
                             at::Tensor x = at::zeros({4, 4}).t();
                             g.all_reduce(x).wait();
                           },
                           "not contiguous"},
                    Misuse{"gather_size",
                           [](Communicator& g) {
                             at::Tensor y = at::zeros({7});
                             g.all_gather(y, at::zeros({2})).wait();
                           },
                           "out has 7 elements, needs 4 x 2"},
                    Misuse{"scatter_size",
                           [](Communicator& g) {
                             at::Tensor y = at::zeros({2});
                             g.reduce_scatter(y, at::zeros({7})).wait();
                           },
                           "in has 7 elements, needs 4 x 2"},
                    Misuse{"dtype",
                           [](Communicator& g) {
                             at::Tensor y = at::zeros({8}, at::kBFloat16);
                             g.all_gather(y, at::zeros({2})).wait();
                           },
                           "out is bf16 but in is fp32"},
                    Misuse{"splits",
                           [](Communicator& g) {
                             at::Tensor y = at::zeros({4});
                             const std::vector<int64_t> out(4, 1), in = {1, 1, 1, 2};
                             g.all_to_all(y, at::zeros({4}), out, in).wait();
                           },
                           "splits must add up"},
                    Misuse{"root",
                           [](Communicator& g) {
                             at::Tensor x = at::zeros({1});
                             g.broadcast(x, 4).wait();
                           },
                           "rank 4 is outside 0..3"},
                    Misuse{"itself", [](Communicator& g) { g.send(at::zeros({1}), 1).wait(); },
                           "a rank cannot send to itself"}),
    [](const auto& info) { return info.param.name; });

TEST(Solo, CopiesInputToOutputAndCountsNothing) {
  const auto group = solo_communicator({.name = "tp", .ranks = {3}});
  at::Tensor x = at::ones({2, 3}), y = at::zeros({2, 3});
  group->all_reduce(x).wait();
  group->all_gather(y, x).wait();
  EXPECT_TRUE(at::equal(x, y));
  y.zero_();
  group->reduce_scatter(y, x).wait();
  EXPECT_TRUE(at::equal(x, y));
  y.zero_();
  group->all_to_all(y, x).wait();
  EXPECT_TRUE(at::equal(x, y));
  group->broadcast(x, 0).wait();
  group->barrier().wait();
  EXPECT_TRUE(group->traffic().empty());
}

TEST(Handle, FindsACommunicatorWhileItLives) {
  int64_t handle = 0;
  {
    Scripted group(2);
    handle = group.handle();
    EXPECT_EQ(&Communicator::of(handle), &group);
  }
  EXPECT_THROW((void)Communicator::of(handle), std::logic_error);
}

}  // namespace
}  // namespace assay
