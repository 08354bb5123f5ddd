// collectives_bench: comm/shm against comm/gloo on loopback and against the memory bandwidth that
// the same processes reach at the same time. Every round times all three; ratios are medians of
// per-round ratios, so that a slow second of the machine hits all alike.
//
//   collectives_bench [RANKS [ROUNDS [CHUNK_KIB [SLOTS]]]]     default 2 ranks, 15 rounds
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "gloo.h"
#include "shm.h"

namespace assay::comm {
namespace {

constexpr std::array<int64_t, 5> kBytes = {4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20};
constexpr int64_t kBytesPerTiming = 64 << 20;  // small calls are repeated to about this much

double seconds(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Groups {
  Groups(const std::filesystem::path& folder, int ranks, int index, const ShmOptions& options)
      : shm_backend(options) {
    GroupSpec spec{.index = index, .rendezvous = folder};
    for (int rank = 0; rank < ranks; ++rank) spec.ranks.push_back(rank);
    spec.name = "shm";
    shm = shm_backend.connect(spec);
    spec.name = "gloo";
    gloo = gloo_backend.connect(spec);
  }
  ShmBackend shm_backend;
  GlooBackend gloo_backend{GlooOptions{}};
  std::shared_ptr<Communicator> shm, gloo;
};

/// Seconds of one call, all ranks starting together; the slowest rank counts.
double timed(Communicator& clock, int64_t repeats, const std::function<void()>& call) {
  clock.barrier().wait();
  const double own = seconds([&] {
    for (int64_t i = 0; i < repeats; ++i) call();
  });
  at::Tensor slowest = at::full({1}, own / static_cast<double>(repeats), at::kDouble);
  clock.all_reduce(slowest, ReduceOp::max).wait();
  return slowest.item<double>();
}

void compare(Groups& groups, int64_t bytes, int rounds) {
  const int64_t numel = bytes / 4;
  const int64_t repeats = std::max<int64_t>(1, std::min<int64_t>(200, kBytesPerTiming / bytes / 4));
  at::Tensor x = at::ones({numel}), y = at::ones({numel}), sum = at::ones({numel});
  std::vector<double> shm, gloo, bound, over_gloo, over_bound;
  for (int round = -1; round < rounds; ++round) {
    const double s = timed(*groups.shm, repeats, [&] { groups.shm->all_reduce(x).wait(); });
    const double g = timed(*groups.shm, repeats, [&] { groups.gloo->all_reduce(y).wait(); });
    const double b = timed(*groups.shm, repeats, [&] { at::add_out(sum, x, y); });
    x.fill_(1);
    y.fill_(1);
    if (round < 0) continue;  // warm-up
    shm.push_back(s);
    gloo.push_back(g);
    bound.push_back(b);
    over_gloo.push_back(g / s);
    over_bound.push_back(s / b);
  }
  if (groups.shm->rank() != 0) return;
  std::printf("%10lld  %10.1f  %10.1f  %10.1f  %8.2f x  %8.2f x  %8.2f GB/s\n",
              static_cast<long long>(bytes), median(shm) * 1e6, median(gloo) * 1e6,
              median(bound) * 1e6, median(over_gloo), median(over_bound),
              static_cast<double>(bytes) / median(shm) * 1e-9);
  std::fflush(stdout);
}

void run_rank(const std::filesystem::path& folder, int ranks, int index, int rounds,
              const ShmOptions& options) {
  at::set_num_threads(1);
  const at::NoGradGuard no_grad;
  Groups groups(folder, ranks, index, options);
  if (index == 0) {
    std::printf("all_reduce of fp32, %d ranks, %d rounds, chunk %lld, slots %lld; microseconds\n",
                ranks, rounds, static_cast<long long>(options.chunk.value),
                static_cast<long long>(options.slots));
    std::printf("%10s  %10s  %10s  %10s  %10s  %10s  %13s\n", "bytes", "shm", "gloo", "add bound",
                "gloo/shm", "shm/bound", "payload rate");
  }
  for (const int64_t bytes : kBytes) compare(groups, bytes, rounds);
  groups.shm->barrier().wait();
}

}  // namespace
}  // namespace assay::comm

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::max(2, std::atoi(argv[1])) : 2;
  const int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 15;
  assay::comm::ShmOptions options;
  if (argc > 3) options.chunk.value = std::atoll(argv[3]) << 10;
  if (argc > 4) options.slots = std::atoll(argv[4]);
  std::string folder =
      (std::filesystem::temp_directory_path() / "assay-collectives-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  for (int rank = 0; rank < ranks; ++rank) {
    if (fork() != 0) continue;
    try {
      assay::comm::run_rank(folder, ranks, rank, rounds, options);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
      _exit(1);
    }
    _exit(0);
  }
  bool failed = false;
  for (int status = 0; wait(&status) > 0;) failed |= status != 0;
  std::filesystem::remove_all(folder);
  return failed ? 1 : 0;
}
