// What layouts share: initial weights by element, data order by sample, learning rate by step.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "core/train/counter_random.h"
#include "core/train/initialise.h"
#include "core/train/lr_schedule.h"
#include "recipes.h"

namespace assay::train {
namespace {

TEST(Philox, KnownAnswers) {  // Random123's kat_vectors for philox4x32-10
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(NormalQuantile, InvertsTheDistribution) {
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-14);
  for (const double p : {1e-300, 1e-12, 0.001, 0.07, 0.3, 0.5, 0.8, 0.999}) {
    EXPECT_NEAR(normal_cdf(normal_quantile(p)) / p, 1.0, 1e-11) << p;
  }
}

TEST(Permutation, VisitsEveryRowOnce) {
  for (const uint64_t n : {1u, 2u, 3u, 7u, 64u, 1000u}) {
    const Permutation permutation(n, 42);
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < n; ++i) seen.insert(permutation(i));
    EXPECT_EQ(seen.size(), n);
    EXPECT_LT(*seen.rbegin(), n);
  }
}

ParameterSpec matrix() {
  ParameterSpec spec;
  spec.name = "w";
  spec.shape = {33, 20};
  spec.init = {Init::Kind::truncated_normal, 0.0, 0.02, 3.0};
  return spec;
}

TEST(InitialValue, ABoxIsTheSameAsTheCutOfTheWhole) {
  const ParameterSpec spec = matrix();
  const Tensor all = initial_value(spec, whole(spec.shape), 1, at::kFloat, at::kCPU);
  const Box box{{5, 7}, {11, 9}};
  const Tensor part = initial_value(spec, box, 1, at::kFloat, at::kCPU);
  EXPECT_TRUE(part.equal(all.narrow(0, 5, 11).narrow(1, 7, 9)));
}

TEST(InitialValue, HasTheMomentsItDeclares) {
  ParameterSpec spec = matrix();
  spec.shape = {400, 500};
  const Tensor w = initial_value(spec, whole(spec.shape), 1, at::kDouble, at::kCPU);
  // Variance of a standard normal cut at 3: 1 - 2 * 3 * pdf(3) / (2 cdf(3) - 1) = 0.97331.
  EXPECT_NEAR(w.std().item<double>() / 0.02, std::sqrt(0.97331), 0.01);
  EXPECT_NEAR(w.mean().item<double>(), 0.0, 0.02 * 0.01);
  EXPECT_LE(w.abs().max().item<double>(), 0.06);
}

TEST(InitialValue, NamesAndSeedsAreDifferentStreams) {
  ParameterSpec spec = matrix();
  const auto draw = [&](uint64_t seed) {
    return initial_value(spec, whole(spec.shape), seed, at::kFloat, at::kCPU);
  };
  const Tensor first = draw(1);
  EXPECT_TRUE(first.equal(draw(1)));
  EXPECT_FALSE(first.equal(draw(2)));
  spec.name = "v";
  EXPECT_FALSE(first.equal(draw(1)));
}

std::vector<double> factors(const LrSchedule& schedule) {
  std::vector<double> result;
  for (int64_t i = 0; i < schedule.total; ++i) result.push_back(schedule.factor(i));
  return result;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 5e-5) << "step " << i;
}

TEST(LrSchedule, TablesOfTheSpecification) {
  expect_near(factors({.name = "linear", .total = 10, .warmup = 2}),
              {0.5, 1, 1, .875, .75, .625, .5, .375, .25, .125});
  expect_near(factors({.name = "cosine", .total = 10, .warmup = 2, .min_factor = 0.1}),
              {.5, 1, 1, .9657, .8682, .7222, .55, .3778, .2318, .1343});
  expect_near(factors({.name = "wsd",
                       .decay_shape = "sqrt",
                       .total = 10,
                       .warmup = 2,
                       .decay_ratio = 0.4,
                       .min_factor = 0.1}),
              {.5, 1, 1, 1, 1, 1, 1, .55, .3636, .2206});
}

class NumberedRows : public DataSource {  // one token per row, its number
 public:
  int64_t vocabulary() const override { return 64; }
  std::string fingerprint() const override { return {}; }
  int64_t rows(Split, int64_t) const override { return 13; }
  Sample sample(Split, int64_t row, int64_t) const override {
    return {.tokens = {row}, .labels = {row == 5 ? -100 : row}, .document_starts = {0}};
  }
  int64_t tokens(Split) const override { return 13; }
  int64_t bytes() const override { return 13; }
};

std::multiset<int64_t> rows_of_step(int64_t ranks, int64_t step) {
  std::multiset<int64_t> rows;
  for (int rank = 0; rank < ranks; ++rank) {
    MeshDegrees degrees;
    degrees.dp_replicate = ranks;
    const Batches batches(std::make_shared<NumberedRows>(),
                          {.global_batch = 8, .micro_batch = 2, .seq_len = 1}, Mesh(degrees, rank),
                          {}, 3, at::kCPU);
    for (const Microbatch& micro : batches.train(step).microbatches) {
      for (int64_t i = 0; i < 2; ++i) rows.insert(micro.ids[i][0].item<int64_t>());
    }
  }
  return rows;
}

TEST(Batches, EveryLayoutReadsTheSameSamplesInAStep) {
  for (int64_t step = 0; step < 4; ++step) {  // crosses an epoch of 13 rows
    EXPECT_EQ(rows_of_step(1, step), rows_of_step(2, step));
    EXPECT_EQ(rows_of_step(1, step), rows_of_step(4, step));
  }
}

TEST(Batches, APerturbedStepHasTheSameSamplesInAnotherOrder) {
  const auto rows = [](int64_t perturbation, int64_t step) {
    const BatchShape shape{
        .global_batch = 8, .micro_batch = 8, .seq_len = 1, .perturbation = perturbation};
    const Batches batches(std::make_shared<NumberedRows>(), shape, Mesh(), {}, 1, at::kCPU);
    const Tensor ids = batches.train(step).microbatches.at(0).ids;
    return std::vector<int64_t>(ids.const_data_ptr<int64_t>(), ids.const_data_ptr<int64_t>() + 8);
  };
  std::set<std::vector<int64_t>> orders;
  for (int64_t perturbation = 0; perturbation <= 8; ++perturbation) {
    auto order = rows(perturbation, 2);
    orders.insert(order);
    EXPECT_EQ(order, rows(perturbation, 2)) << "the same each time";
    std::sort(order.begin(), order.end());
    auto plain = rows(0, 2);
    std::sort(plain.begin(), plain.end());
    EXPECT_EQ(order, plain) << "of perturbation " << perturbation;
  }
  EXPECT_EQ(orders.size(), 9u);
}

TEST(Batches, AnEpochVisitsEveryRowOnce) {
  std::multiset<int64_t> seen;
  for (int64_t step = 0; step < 13; ++step) seen.merge(rows_of_step(1, step));  // 8 epochs
  for (int64_t row = 0; row < 13; ++row) EXPECT_EQ(seen.count(row), 8u) << row;
}

TEST(Batches, RefusesABatchThatDoesNotDivide) {
  EXPECT_THROW(
      Batches(std::make_shared<NumberedRows>(), {.global_batch = 8, .micro_batch = 3, .seq_len = 1},
              Mesh(), {}, 1, at::kCPU),
      Error);
}

}  // namespace
}  // namespace assay::train
