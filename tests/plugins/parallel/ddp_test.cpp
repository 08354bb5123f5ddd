// parallel/ddp: buckets, sums over rank threads, counts and bytes against the closed form.
#include "ddp.h"
#include "assay/precision.h"

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <thread>

#include "buckets.h"
#include "fake.h"
#include "thread.h"

namespace assay::parallel {
namespace {

using testing::ElementsAre;

/// What ddp may ask of a precision and a model: dtypes, and nothing.
class StubPrecision final : public Precision {
 public:
  explicit StubPrecision(Dtypes dtypes) : dtypes_(dtypes) {}
  Dtypes dtypes() const override { return dtypes_; }

 private:
  Dtypes dtypes_;
};

class StubModel final : public Model {
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

const std::vector<int64_t> kSizes = {5, 300, 7, 300, 2};  // elements of the parameters

/// One replica: parameters with sinks, and the sync under test.
struct Replica {
  Replica(int n, int rank, std::shared_ptr<CommBackend> backend, const std::string& rendezvous,
          const DdpOptions& options, Dtypes dtypes = {}, at::Device device = at::kCPU)
      : mesh({.dp_replicate = n}, rank),
        groups(mesh, std::move(backend), {.rendezvous = rendezvous, .timeout_ns = 20'000'000'000}),
        precision(dtypes),
        context{mesh,  groups, model,    precision, parameters, blocks,
                false, step,   counters, device,    1} {
    parameters.resize(kSizes.size());
    for (size_t i = 0; i < kSizes.size(); ++i) {
      const auto total =
          at::zeros({kSizes[i]}, at::TensorOptions().dtype(dtypes.main_grad).device(device));
      parameters[i].gradient = total;
      parameters[i].sink.prepare(&step, 1, total, [this, i] {
        if (sync && sync->arms(step.microbatch, step.microbatches)) sync->ready(i);
      });
      indices.push_back(i);
    }
    sync = Ddp(options).gradient_sync(context);
  }

  /// The gradients of one microbatch, last parameter first; parameter 2 gets none in the last one.
  void backward(int64_t microbatch, int64_t microbatches) {
    step.microbatch = microbatch;
    step.microbatches = microbatches;
    for (size_t i = parameters.size(); i-- > 0;) {
      if (i == 2 && microbatch + 1 == microbatches) continue;
      const double value = (static_cast<double>(i) + 1) * (mesh.rank() + 1);
      GradientSink& sink = parameters[i].sink;
      sink.add([&] { return at::full_like(sink.total(), value); });
    }
  }

  void run_step(int64_t microbatches) {
    for (Parameter& p : parameters) p.sink.reset();
    for (int64_t m = 0; m < microbatches; ++m) backward(m, microbatches);
    for (Parameter& p : parameters) p.sink.finish();
    sync->flush(indices);
    sync->wait();
  }

  Mesh mesh;
  GroupMap groups;
  StubModel model;
  StubPrecision precision;
  std::vector<Parameter> parameters;
  std::vector<size_t> indices;
  std::vector<BlockSpec> blocks;
  StepState step;
  Counters counters;
  RankContext context;
  std::unique_ptr<GradientSync> sync;
};

void on_replicas(int n, const std::function<void(int rank, const std::string& rendezvous)>& body) {
  static int runs = 0;
  const std::string rendezvous = "ddp" + std::to_string(runs++);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < n; ++rank) {
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      body(rank, rendezvous);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::shared_ptr<CommBackend> thread_backend() {
  return std::make_shared<comm::ThreadBackend>(comm::ThreadOptions{});
}

TEST(DdpBuckets, ReverseOrderClosedWhenFull) {
  EXPECT_THAT(plan_buckets({4, 4, 4, 4, 4}, 8),
              ElementsAre(ElementsAre(4u, 3u), ElementsAre(2u, 1u), ElementsAre(0u)));
  EXPECT_THAT(plan_buckets({100, 1, 100}, 8), ElementsAre(ElementsAre(2u), ElementsAre(1u, 0u)));
  EXPECT_THAT(plan_buckets({1, 2, 3}, 1000), ElementsAre(ElementsAre(2u, 1u, 0u)));
  EXPECT_TRUE(plan_buckets({}, 8).empty());
}

TEST(DdpBuckets, TotalsBecomeViewsOfOneBuffer) {
  std::vector<Parameter> parameters(2);
  StepState step;
  for (Parameter& p : parameters) {
    p.gradient = at::zeros({2, 3});
    p.sink.prepare(&step, 1, p.gradient, {});
  }
  const auto buckets = make_buckets(parameters, 1 << 20);
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_EQ(buckets[0].flat.numel(), 12);
  parameters[0].sink.add([] { return at::full({2, 3}, 7.0); });
  EXPECT_EQ(buckets[0].flat[6].item<float>(), 7);
  EXPECT_EQ(buckets[0].flat[5].item<float>(), 0);
  EXPECT_EQ(parameters[0].sink.total().sizes(), at::IntArrayRef({2, 3}));
}

/// Parameter i sums (i + 1)(1 + 2 + ... + n) per microbatch; parameter 2 misses the last one.
TEST(Ddp, SumsOverReplicasAndMicrobatches) {
  for (const bool overlap : {true, false}) {
    on_replicas(3, [overlap](int rank, const std::string& rendezvous) {
      Replica replica(3, rank, thread_backend(), rendezvous,
                      {.bucket_mb = 1e-3, .overlap = overlap});
      for (const int64_t microbatches : {1, 4}) {
        replica.run_step(microbatches);
        for (size_t i = 0; i < kSizes.size(); ++i) {
          const double count = static_cast<double>(microbatches - (i == 2 ? 1 : 0));
          const Tensor& total = replica.parameters[i].sink.total();
          EXPECT_TRUE(at::equal(total, at::full_like(total, (i + 1.0) * 6 * count)))
              << "parameter " << i << ", " << microbatches << " microbatches";
        }
      }
    });
  }
}

TEST(Ddp, CallsAndBytesDoNotDependOnTheNumberOfMicrobatches) {
  on_replicas(4, [](int rank, const std::string& rendezvous) {
    Replica replica(4, rank, thread_backend(), rendezvous, {.bucket_mb = 1e-3});
    replica.run_step(1);
    replica.run_step(5);
    const auto rows = replica.groups.traffic();
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0].group, "dp_replicate");
    EXPECT_EQ(rows[0].op, "all_reduce");
    EXPECT_EQ(rows[0].count, 2 * 3);  // two steps, buckets {4, 3}, {2, 1} and {0}
    EXPECT_EQ(rows[0].payload_bytes, 2 * 614 * 4);
    EXPECT_EQ(rows[0].wire_bytes, 2 * (2 * 614 * 4 * 3 / 4));
    EXPECT_EQ(replica.counters.at("ddp.all_reduces"), 6);
  });
}

TEST(Ddp, WithOverlapABucketStartsBeforeBackwardEnds) {
  const auto started = [](bool overlap) {
    Replica replica(2, 0, std::make_shared<comm::FakeBackend>(comm::FakeOptions{}), "",
                    {.bucket_mb = 1e-3, .overlap = overlap});
    replica.backward(0, 2);
    EXPECT_EQ(replica.counters.at("ddp.all_reduces"), 0) << "the first of two microbatches";
    replica.backward(1, 2);
    return replica.counters.at("ddp.all_reduces");
  };
  EXPECT_EQ(started(true), 1);  // the second bucket lacks parameter 2
  EXPECT_EQ(started(false), 0);
}

TEST(Ddp, ReducesInTheReduceDtype) {
  on_replicas(2, [](int rank, const std::string& rendezvous) {
    Replica replica(2, rank, thread_backend(), rendezvous, {}, {.reduce = at::kBFloat16});
    replica.run_step(1);
    EXPECT_EQ(replica.groups.traffic().at(0).payload_bytes, 614 * 2);
    EXPECT_EQ(replica.groups.traffic().at(0).dtype, "bf16");
    EXPECT_EQ(replica.parameters[4].sink.total().scalar_type(), at::kFloat);
    EXPECT_EQ(replica.parameters[4].sink.total()[0].item<float>(), 15);
  });
}

TEST(Ddp, RunsOnMetaAtAnyWorldSize) {
  Replica replica(1024, 1000, std::make_shared<comm::FakeBackend>(comm::FakeOptions{}), "", {}, {},
                  at::kMeta);
  replica.run_step(2);
  EXPECT_EQ(replica.groups.traffic().at(0).wire_bytes, 2LL * 614 * 4 * 1023 / 1024);
}

TEST(Ddp, OneReplicaNeedsNoSync) {
  Replica replica(1, 0, nullptr, "", {});
  EXPECT_EQ(replica.sync, nullptr);
}

}  // namespace
}  // namespace assay::parallel
