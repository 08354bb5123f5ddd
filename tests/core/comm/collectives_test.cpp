// Differentiable collectives among rank threads: values, gradients against the transposed matrix,
// operators on meta.
#include "assay/collectives.h"

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <thread>

#include "thread.h"

namespace assay {
namespace {

/// Runs `body` on `n` rank threads and returns what each gave.
std::vector<Tensor> on_ranks(int n, const std::function<Tensor(Communicator&)>& body) {
  static int runs = 0;
  const std::string name = "collectives" + std::to_string(runs++);
  std::vector<Tensor> results(static_cast<size_t>(n));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < n; ++rank) {
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      GroupSpec spec{.name = "tp", .index = rank, .rendezvous = name, .timeout_ns = 20'000'000'000};
      for (int i = 0; i < n; ++i) spec.ranks.push_back(i);
      comm::ThreadBackend backend({});
      results[static_cast<size_t>(rank)] = body(*backend.connect(spec));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

Tensor input_of(int rank) {
  return at::arange(8, at::kDouble).view({4, 2}).add(10.0 * rank).requires_grad_();
}

/// x's gradient under the loss sum(y * (weight + rank)): the cotangent differs per rank.
Tensor gradient(const Tensor& x, const Tensor& y, const Tensor& cotangent) {
  y.mul(cotangent).sum().backward();
  return x.grad();
}

Tensor iota(at::IntArrayRef shape, double offset) {
  int64_t numel = 1;
  for (const int64_t size : shape) numel *= size;
  return at::arange(numel, at::kDouble).view(shape).add(offset);
}

TEST(Collectives, AllReduceOfAReplicatedCotangentIsTheIdentity) {
  const auto gradients = on_ranks(3, [](Communicator& group) {
    const Tensor x = input_of(group.rank());
    const Tensor y = all_reduce(x, group);
    EXPECT_EQ(y[0][1].item<double>(), 1 + 11 + 21);
    return gradient(x, y, iota({4, 2}, 0));
  });
  for (const Tensor& dx : gradients) EXPECT_TRUE(at::equal(dx, iota({4, 2}, 0)));
}

TEST(Collectives, AllReduceOfAPartialCotangentSumsIt) {
  const auto gradients = on_ranks(2, [](Communicator& group) {
    const Tensor x = input_of(group.rank());
    return gradient(x, all_reduce(x, group, Cotangent::partial), iota({4, 2}, group.rank()));
  });
  for (const Tensor& dx : gradients) EXPECT_TRUE(at::equal(dx, iota({4, 2}, 0).mul(2).add(1)));
}

TEST(Collectives, ReplicateIsTheTransposeOfAllReduce) {
  const auto gradients = on_ranks(2, [](Communicator& group) {
    const Tensor x = input_of(5);
    const Tensor y = replicate(x, group);
    EXPECT_TRUE(at::equal(y, x));
    return gradient(x, y, iota({4, 2}, 100.0 * group.rank()));
  });
  for (const Tensor& dx : gradients) EXPECT_TRUE(at::equal(dx, iota({4, 2}, 0).mul(2).add(100)));
}

TEST(Collectives, AllGatherAlongEachDimension) {
  for (const int64_t dim : {0, 1, -1}) {
    const auto gradients = on_ranks(2, [dim](Communicator& group) {
      const Tensor x = input_of(group.rank());
      const Tensor y = all_gather(x, group, dim);
      EXPECT_TRUE(at::equal(y.narrow(dim, 0, x.size(dim)), input_of(0)));
      EXPECT_TRUE(at::equal(y.narrow(dim, x.size(dim), x.size(dim)), input_of(1)));
      return gradient(x, y, iota(y.sizes(), 1000.0 * group.rank()));
    });
    const Tensor sum = iota(dim == 0 ? Shape{8, 2} : Shape{4, 4}, 0).mul(2).add(1000);
    const int64_t size = dim == 0 ? 4 : 2;
    EXPECT_TRUE(at::equal(gradients[0], sum.narrow(dim, 0, size)));
    EXPECT_TRUE(at::equal(gradients[1], sum.narrow(dim, size, size)));
  }
}

TEST(Collectives, AllGatherOfAReplicatedCotangentKeepsTheOwnSlice) {
  const auto gradients = on_ranks(2, [](Communicator& group) {
    const Tensor x = input_of(group.rank());
    return gradient(x, all_gather(x, group, 1, Cotangent::replicated), iota({4, 4}, 0));
  });
  EXPECT_TRUE(at::equal(gradients[1], iota({4, 4}, 0).narrow(1, 2, 2)));
}

TEST(Collectives, ReduceScatterAndScatterGatherTheirCotangents) {
  for (const bool summed : {true, false}) {
    const auto gradients = on_ranks(2, [summed](Communicator& group) {
      const Tensor x = input_of(summed ? group.rank() : 0);
      const Tensor y = summed ? reduce_scatter(x, group, 1) : scatter(x, group, 1);
      const Tensor whole = summed ? input_of(0).add(input_of(1)) : input_of(0);
      EXPECT_TRUE(at::equal(y, whole.narrow(1, group.rank(), 1)));
      return gradient(x, y, at::full({4, 1}, group.rank() + 1.0, at::kDouble));
    });
    for (const Tensor& dx : gradients) {
      EXPECT_EQ(dx[2][0].item<double>(), 1);
      EXPECT_EQ(dx[2][1].item<double>(), 2);
    }
  }
}

TEST(Collectives, AllToAllSendsItsCotangentBack) {
  on_ranks(2, [](Communicator& group) {
    const bool first = group.rank() == 0;  // rank 0: 1 row stays, 3 go; rank 1: 2 go, 2 stay
    const Tensor x = input_of(group.rank());
    const std::vector<int64_t> in = first ? std::vector<int64_t>{1, 3} : std::vector<int64_t>{2, 2};
    const std::vector<int64_t> out =
        first ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{3, 2};
    const Tensor y = all_to_all(x, group, out, in);
    EXPECT_EQ(y.size(0), first ? 3 : 5);
    EXPECT_TRUE(at::equal(gradient(x, y, y.detach()), x.detach()));
    return x;
  });
}

TEST(Collectives, MaximumHasNoGradient) {
  on_ranks(2, [](Communicator& group) {
    const Tensor y = all_reduce_max(input_of(group.rank()), group);
    EXPECT_TRUE(at::equal(y, input_of(1)));
    EXPECT_FALSE(y.requires_grad());
    return y;
  });
}

TEST(Collectives, RefuseASizeThatTheGroupDoesNotDivide) {
  on_ranks(3, [](Communicator& group) {
    EXPECT_THROW((void)reduce_scatter(input_of(0), group, 0), Error);
    return Tensor();
  });
}

TEST(Collectives, MetaTensorsKeepShapesAndAreCountedForwardAndBackward) {
  comm::ThreadBackend backend({});
  const auto group = backend.connect({.name = "fsdp", .ranks = {0, 1, 2, 3}, .index = 1});
  const Tensor x = at::empty({4, 2}, at::TensorOptions().device(at::kMeta)).requires_grad_();
  const Tensor y = all_gather(x, *group);
  EXPECT_EQ(y.sizes(), at::IntArrayRef({16, 2}));
  y.sum().backward();
  EXPECT_EQ(x.grad().sizes(), x.sizes());
  const auto rows = group->traffic();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].op, "all_gather");
  EXPECT_EQ(rows[1].op, "reduce_scatter");
  EXPECT_EQ(rows[0].payload_bytes, rows[1].payload_bytes);
}

}  // namespace
}  // namespace assay
