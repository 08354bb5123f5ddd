// parallel/ep: rows arrive in the order of one rank that has all tokens, and cost what the matrix
// of counts says.
#include "ep.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <thread>

#include "assay/ops.h"
#include "assay/precision.h"
#include "fake.h"
#include "thread.h"

namespace assay::parallel {
namespace {

constexpr int64_t kExperts = 8, kTop = 2, kHidden = 3, kWidth = 8;

class NoPrecision final : public Precision {
 public:
  Dtypes dtypes() const override { return {}; }
};

class NoModel final : public Model {
 public:
  void bind(const ModelContext&) override {}
  std::vector<ParameterSpec> parameters() const override { return {}; }
  std::vector<BlockSpec> blocks() const override { return {}; }
  Tensor forward(const BlockSpec&, const BlockInput&, BlockWeights, Ops&) const override {
    return {};
  }
  Flops flops_per_token(int64_t) const override { return {}; }
  int64_t vocabulary() const override { return 0; }
  int64_t sequence_length() const override { return 0; }
  std::map<std::string, int64_t> facts() const override { return {}; }
};

/// One rank of ep = n over dp_shard = n.
struct Rank {
  Rank(int n, int rank, std::shared_ptr<CommBackend> backend, const std::string& rendezvous,
       at::Device device = at::kCPU)
      : mesh({.dp_shard = n, .ep = n}, rank),
        groups(mesh, std::move(backend), {.rendezvous = rendezvous, .timeout_ns = 20'000'000'000}),
        context{mesh,  groups, model,    precision, parameters, blocks,
                false, step,   counters, device,    1} {
    ops = Ep({}).wrap_ops(make_eager_ops(), context);
  }

  /// Wire bytes of the group so far, those of phase control apart.
  std::pair<int64_t, int64_t> wire_bytes() {
    std::pair<int64_t, int64_t> bytes{0, 0};
    for (const Traffic& t : groups.traffic()) {
      (t.phase == "control" ? bytes.second : bytes.first) += t.wire_bytes;
    }
    return bytes;
  }

  Mesh mesh;
  GroupMap groups;
  NoModel model;
  NoPrecision precision;
  std::vector<Parameter> parameters;
  std::vector<BlockSpec> blocks;
  StepState step;
  Counters counters;
  RankContext context;
  std::unique_ptr<Ops> ops;
};

/// The tokens and choices of every rank: other numbers of tokens, none on rank 1, and an expert
/// that nobody chooses.
struct Tokens {
  explicit Tokens(int n) {
    at::Generator generator = at::detail::createCPUGenerator(3);
    for (int rank = 0; rank < n; ++rank) {
      const int64_t tokens = rank == 1 ? 0 : 5 + 4 * rank;
      x.push_back(at::randn({tokens, kHidden}, generator, at::TensorOptions(at::kDouble)));
      gates.push_back(at::randn({tokens, kTop}, generator, at::TensorOptions(at::kDouble)));
      experts.push_back(
          at::randint(kExperts - 1, {tokens, kTop}, generator, at::TensorOptions(at::kLong)));
    }
  }
  /// Pairs of rank `from` whose expert is on rank `to`.
  int64_t pairs(int from, int to) const {
    const int64_t mine = kExperts / static_cast<int64_t>(x.size());
    const Tensor owner = experts[static_cast<size_t>(from)].floor_divide(mine);
    return owner.eq(to).sum().item<int64_t>();
  }
  Tensors x, gates, experts;
};

void on_ranks(int n, const std::function<void(Rank&, size_t)>& body) {
  static int runs = 0;
  const std::string rendezvous = "ep" + std::to_string(runs++);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < n; ++rank) {
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      Rank r(n, rank, std::make_shared<comm::ThreadBackend>(comm::ThreadOptions{}), rendezvous);
      body(r, static_cast<size_t>(rank));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Any function of one row.
Tensor expert(const Tensor& rows) { return rows.mul(rows).add(rows); }

Tensor through(Ops& ops, const Tensor& x, const Tensor& experts, const Tensor& gates) {
  const Dispatch d = ops.dispatch(x, experts, kExperts, 4);
  return ops.combine(expert(d.rows), d, gates);
}

TEST(Ep, AnExpertMeetsTheRowsOfAllRanksInTheirOrder) {
  for (const int n : {2, 4}) {
    const Tokens tokens(n);
    const Dispatch all =
        make_eager_ops()->dispatch(at::cat(tokens.x), at::cat(tokens.experts), kExperts, 4);
    on_ranks(n, [&](Rank& r, size_t rank) {
      const Dispatch d = r.ops->dispatch(tokens.x[rank], tokens.experts[rank], kExperts, 4);
      const int64_t mine = kExperts / n, first = static_cast<int64_t>(rank) * mine;
      const auto begin = all.expert_rows.begin() + first;
      EXPECT_EQ(d.expert_rows, std::vector<int64_t>(begin, begin + mine));
      const int64_t before = std::accumulate(all.expert_rows.begin(), begin, int64_t{0});
      EXPECT_TRUE(d.rows.equal(all.rows.narrow(0, before, d.rows.size(0)))) << "rank " << rank;
    });
  }
}

TEST(Ep, OutputsAndGradientsHaveTheBitsOfOneRank) {
  for (const int n : {2, 4}) {
    const Tokens tokens(n);
    on_ranks(n, [&](Rank& r, size_t rank) {
      const auto run = [&](Ops& ops) {
        const Tensor x = tokens.x[rank].clone().requires_grad_();
        const Tensor gates = tokens.gates[rank].clone().requires_grad_();
        const Tensor y = through(ops, x, tokens.experts[rank], gates);
        y.mul(y).sum().backward();
        return Tensors{y.detach(), x.grad(), gates.grad()};
      };
      const Tensors here = run(*make_eager_ops()), spread = run(*r.ops);
      for (size_t i = 0; i < here.size(); ++i) {
        EXPECT_TRUE(spread[i].equal(here[i])) << "rank " << rank << ", tensor " << i;
      }
      EXPECT_EQ(r.counters.at("ep.messages"), 2);
    });
  }
}

TEST(Ep, BytesAreThoseOfTheCountMatrix) {
  for (const int n : {2, 4}) {
    const Tokens tokens(n);
    on_ranks(n, [&](Rank& r, size_t rank) {
      int64_t leaving = 0, arriving = 0;
      for (int other = 0; other < n; ++other) {
        if (other == static_cast<int>(rank)) continue;
        leaving += tokens.pairs(static_cast<int>(rank), other) * kHidden * kWidth;
        arriving += tokens.pairs(other, static_cast<int>(rank)) * kHidden * kWidth;
      }
      const int64_t counts = 8 * kExperts * (n - 1) / n;
      const Tensor x = tokens.x[rank].clone().requires_grad_();
      const Dispatch d = r.ops->dispatch(x, tokens.experts[rank], kExperts, 4);
      EXPECT_EQ(r.wire_bytes(), std::pair(leaving, counts));
      const Tensor y = r.ops->combine(expert(d.rows), d, tokens.gates[rank]);
      EXPECT_EQ(r.wire_bytes(), std::pair(leaving + arriving, counts));
      y.sum().backward();
      EXPECT_EQ(r.wire_bytes(), std::pair(2 * (leaving + arriving), counts));
    });
  }
}

TEST(Ep, OnMetaEveryRankSendsWhatThisOneDoes) {
  constexpr int n = 4;
  constexpr int64_t kTokens = 16;
  Rank r(n, 2, std::make_shared<comm::FakeBackend>(comm::FakeOptions{}), "meta", at::kMeta);
  const auto meta = at::TensorOptions(at::kMeta);
  const Tensor x = at::empty({kTokens, kHidden}, meta.dtype(at::kDouble)).requires_grad_();
  const Tensor experts = at::empty({kTokens, kTop}, meta.dtype(at::kLong));
  const Dispatch d = r.ops->dispatch(x, experts, kExperts, 16);
  EXPECT_EQ(d.expert_rows, (std::vector<int64_t>{16, 16}));  // four pairs from each of four ranks
  const Tensor gates = at::empty({kTokens, kTop}, meta.dtype(at::kDouble));
  const Tensor y = r.ops->combine(expert(d.rows), d, gates);
  EXPECT_EQ(y.sizes(), x.sizes());
  y.sum().backward();
  const int64_t message = kTop * kTokens * kHidden * kWidth * (n - 1) / n;
  EXPECT_EQ(r.wire_bytes(), std::pair(4 * message, int64_t{8 * kExperts * (n - 1) / n}));
}

TEST(Ep, CutsTheExpertAxisAndNothingElse) {
  const Mesh mesh({.dp_shard = 4, .ep = 2}, 3);
  ParameterSpec experts;
  experts.shape = {8, 5, 3};
  experts.axes = {{Axis::expert}, {Axis::ffn}, {Axis::hidden}};
  ParameterPlacement cut(experts);
  Ep({}).place(cut, mesh);
  EXPECT_EQ(cut.box().begin, (Shape{4, 0, 0}));
  EXPECT_EQ(cut.box().size, (Shape{4, 5, 3}));
  EXPECT_EQ(cut.shard_group(), MeshGroup::efsdp);
  ParameterSpec dense;
  dense.shape = {5, 3};
  dense.axes = {{Axis::ffn}, {Axis::hidden}};
  ParameterPlacement whole_weight(dense);
  Ep({}).place(whole_weight, mesh);
  EXPECT_TRUE(whole_weight.cuts().empty());
}

}  // namespace
}  // namespace assay::parallel
