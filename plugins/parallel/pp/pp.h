// parallel/pp: the layers in stages over pipeline ranks; a schedule says who runs what when.
#pragma once

#include <filesystem>
#include <string>

#include "assay/options.h"
#include "assay/parallel.h"
#include "assay/pipeline.h"

namespace assay::parallel {

struct PpOptions {
  std::string schedule = "1f1b";
  int64_t v = 0;
  int64_t first_less_layers = 1;
  int64_t last_less_layers = 1;
  bool merge_bw = false;
  bool allow_short = false;
  std::filesystem::path csv{};

  static void declare(OptionTable<PpOptions>& t) {
    using enum Affects;
    t.add(&PpOptions::schedule, "schedule", speed,
          {"gpipe", "1f1b", "interleaved_1f1b", "looped_bfs", "interleaved_zb", "zbv", "dualpipev",
           "csv"},
          "order of forwards and backwards");
    t.add(&PpOptions::v, "v", speed, {0, 64}, "stages per rank; 0: the schedule's default, 1 or 2");
    t.add(&PpOptions::first_less_layers, "first_less_layers", speed, {0, 64},
          "layers that the first stage has less, for the embedding");
    t.add(&PpOptions::last_less_layers, "last_less_layers", speed, {0, 64},
          "layers that the last stage has less, for the norm and the head");
    t.add(&PpOptions::merge_bw, "merge_bw", speed, {}, "run adjacent I and W as one B");
    t.add(&PpOptions::allow_short, "allow_short", speed, {},
          "zbv with fewer than 2p microbatches: valid, but with bubbles");
    t.add(&PpOptions::csv, "csv", speed,
          "schedule csv: the file, in PyTorch's pipelining notation");
  }
};

/// Pipeline parallelism: GPipe arXiv:1811.06965, 1F1B and interleaved arXiv:2104.04473, zero bubble
/// arXiv:2401.10241, DualPipeV arXiv:2412.19437, breadth first arXiv:2211.05953.
///
/// Gradients are those of accumulation over the same microbatches, bit by bit where the schedule
/// takes them in ascending order (all but looped_bfs). Messages: activations and their gradients
/// between neighbouring stages, T d e bytes each.
class Pp final : public ParallelStrategy {
 public:
  using Options = PpOptions;
  explicit Pp(const Options& options) : options_(options) {}

  Pipeline pipeline(const std::vector<BlockSpec>& blocks, int64_t ranks,
                    int64_t microbatches) const override;
  std::vector<std::string> engagement() const override { return {"pipeline.peak_live_chunks"}; }

 private:
  const Options options_;
};

}  // namespace assay::parallel
