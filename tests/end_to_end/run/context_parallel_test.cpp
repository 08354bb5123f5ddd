// Context parallelism as a user meets it: refusals of assay plan, a run on two processes, and a dry
// run of a layout that this machine does not have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/subprocess.h"

namespace assay {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr double kLimitS = 250;

class ContextParallel : public testing::Test {
 protected:
  ContextParallel()
      : folder_(std::filesystem::temp_directory_path() / ("assay-cp-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~ContextParallel() override { std::filesystem::remove_all(folder_); }

  /// assay COMMAND on a study with this grid.
  ProcessResult assay(const std::string& command, const std::string& base, const std::string& grid,
                      const std::vector<std::string>& options = {}) {
    std::ofstream(folder_ / "study.yaml") << "assay: 1\nstudy: cp\nbase:\n" << base << grid;
    std::vector<std::string> line = {std::string(ASSAY_BIN) + "/assay", command,
                                     (folder_ / "study.yaml").string()};
    line.insert(line.end(), options.begin(), options.end());
    return run_process(line, kLimitS);
  }

  const std::filesystem::path folder_;
};

TEST_F(ContextParallel, IsRefusedWhereSequenceOrHeadsCannotBeCut) {
  const auto plan = assay("plan",
                          "  model: {name: llama3, flavour: tiny, seq_len: 256}\n"
                          "  data: synthetic\n"
                          "  mesh: {cp: 2}\n"
                          "  parallel: {dp_shard: fsdp, cp: cp}\n",
                          "grid:\n"
                          "  concat:\n"
                          "    - product: {model.seq_len: [256, 258]}\n"
                          "    - set: {parallel.cp.balance: none}\n"
                          "      product: {model.seq_len: [258, 257]}\n"
                          "    - set: {parallel.cp.method: ulysses}\n"
                          "      product: {mesh.cp: [2, 4]}\n"
                          "run: {devices: 8}\n");
  ASSERT_EQ(plan.exit_code, 0) << plan.out << plan.err;
  EXPECT_THAT(plan.err, HasSubstr("refused[R-CPSEQ]: parallel/cp"));
  EXPECT_THAT(plan.err, HasSubstr("refused[R-CPHEADS]: parallel/cp"));
  EXPECT_THAT(plan.out, HasSubstr("3 refused = 3 cells"));
}

TEST_F(ContextParallel, EveryMethodTrainsOnTwoProcesses) {
  const auto run = assay("run",
                         "  model: {name: llama3, flavour: tiny, seq_len: 32}\n"
                         "  data: synthetic\n"
                         "  mesh: {cp: 2}\n"
                         "  parallel: {dp_shard: fsdp, cp: cp}\n"
                         "  train: {steps: 3, global_batch: 2, threads_per_rank: 1}\n",
                         "grid:\n"
                         "  product: {parallel.cp.method: [all_gather, ring, ulysses]}\n"
                         "run: {timed: false, devices: 2}\n",
                         {"--db", (folder_ / "a.db").string()});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.err, HasSubstr("3 of 3 done: 3 ok"));
}

/// Bytes of one step of the 8B flavour over 8 cp ranks: 32 layers, tau = 1024, kd = 1024, bf16.
TEST_F(ContextParallel, ADryRunCountsTheClosedForms) {
  const auto dry = assay("dryrun",
                         "  model: {name: llama3, flavour: 8B, seq_len: 8192, vocab: flavour}\n"
                         "  data: {name: synthetic, vocab_size: 128256}\n"
                         "  precision: bf16\n"
                         "  mesh: {cp: 8}\n"
                         "  parallel: {dp_shard: fsdp, cp: cp}\n"
                         "  train: {steps: 1, global_batch: 1}\n",
                         "grid:\n"
                         "  product: {parallel.cp.method: [all_gather, ring, ulysses]}\n",
                         {"--json", "--rank", "3"});
  ASSERT_EQ(dry.exit_code, 0) << dry.out << dry.err;
  constexpr int64_t kLayers = 32, kTau = 1024, kKv = 1024, kHidden = 4096, kBlock = 2 * kTau * kKv;
  const std::map<std::string, std::map<std::string, int64_t>> expected{
      {"all-gather",
       {{"all_gather forward", kLayers * kBlock * 2 * 7},
        {"reduce_scatter backward", kLayers * kBlock * 4 * 7}}},
      {"ring",
       {{"send forward", kLayers * kBlock * 2 * 7}, {"send backward", kLayers * kBlock * 6 * 7}}},
      {"ulysses",
       {{"all_to_all forward", kLayers * 2 * kTau * (kHidden + kKv) * 2 * 7 / 8},
        {"all_to_all backward", kLayers * 2 * kTau * (kHidden + kKv) * 2 * 7 / 8}}}};
  const json cells = json::parse(dry.out).at("runs");
  ASSERT_EQ(cells.size(), 3u);
  for (const json& cell : cells) {
    std::map<std::string, int64_t> wire;
    for (const json& row : cell.at("collectives")) {
      if (row.at("grp") != "cp" || row.at("op") == "recv") continue;
      wire[row.at("op").get<std::string>() + " " + row.at("phase").get<std::string>()] +=
          row.at("wire_bytes").get<int64_t>();
    }
    EXPECT_EQ(wire, expected.at(cell.at("cell"))) << cell.at("cell");
  }
}

}  // namespace
}  // namespace assay
