// Mixtures of experts as a user meets them: refusals of assay plan, a run on two processes whose
// table says that experts were forced, and a dry run of Mixtral 8x7B over eight ranks.
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

constexpr double kLimitS = 250;

class Experts : public testing::Test {
 protected:
  Experts()
      : folder_(std::filesystem::temp_directory_path() /
                ("assay-experts-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Experts() override { std::filesystem::remove_all(folder_); }

  ProcessResult assay(std::vector<std::string> line) {
    line.insert(line.begin(), std::string(ASSAY_BIN) + "/assay");
    return run_process(line, kLimitS);
  }

  /// The file of a study with this text behind its name.
  std::string study(const std::string& text) {
    const std::filesystem::path file = folder_ / "study.yaml";
    std::ofstream(file) << "assay: 1\nstudy: experts\n" << text;
    return file.string();
  }

  const std::filesystem::path folder_;
};

TEST_F(Experts, AreRefusedWhereTheyCannotBeChosenOrSpread) {
  const auto plan = assay({"plan", study(R"(
base:
  model: {name: moe, flavour: tiny, seq_len: 256}
  data: synthetic
  mesh: {dp_shard: 2, ep: 2}
  parallel: {dp_shard: fsdp, ep: ep}
grid:
  product:
    case:
      variants:
        - {label: fits, set: {model.top_k: 2}}
        - {label: sequence, set: {mesh.tp: 2, parallel.tp: {name: tp, sp: true}}}
        - {label: many, set: {model.top_k: 9}}
        - {label: small_groups, set: {model.groups: 8, model.limited_groups: 8}}
        - {label: uneven, set: {model.experts: 7}}
        - {label: plain_tp, set: {mesh.tp: 2, parallel.tp: {name: tp, sp: false}}}
        - {label: dense, set: {model: {name: llama3, flavour: tiny, seq_len: 256}}}
run: {devices: 8}
)")});
  ASSERT_EQ(plan.exit_code, 0) << plan.out << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("5 refused = 2 cells"));
  EXPECT_THAT(plan.err, HasSubstr("refused[R-TOPK]: model/moe"));
  EXPECT_THAT(plan.err, HasSubstr("refused[R-GROUPS]: model/moe"));
  EXPECT_THAT(plan.err, HasSubstr("refused[R-EPDIV]: parallel/ep"));
  EXPECT_THAT(plan.err, HasSubstr("refused[R-EPSP]: model/moe"));
  EXPECT_THAT(plan.err, HasSubstr("refused[R-NEEDS]: parallel/ep needs model.moe"));
}

TEST_F(Experts, TrainOnTwoProcessesAndTablesSayWhatIsForced) {
  const std::string file = study(R"(
base:
  model: {name: moe, flavour: tiny, seq_len: 32}
  data: synthetic
  mesh: {dp_shard: 2, ep: 2}
  parallel: {dp_shard: fsdp, ep: ep}
  train: {steps: 3, global_batch: 2, threads_per_rank: 1}
grid:
  product: {model.force_balance: [false, true]}
run: {timed: false, devices: 2}
)");
  const std::string db = (folder_ / "a.db").string();
  const auto run = assay({"run", file, "--db", db});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.err, HasSubstr("2 of 2 done: 2 ok"));
  const auto table = assay({"compare", "experts", "--db", db});
  EXPECT_THAT(table.out, HasSubstr("experts by round robin (force_balance"))
      << table.out << table.err;
}

/// Per layer: two messages each way of k T d e bytes, 7 of 8 parts of them to other ranks.
TEST_F(Experts, ADryRunOfMixtralCountsTheClosedForm) {
  const auto dry = assay({"dryrun", study(R"(
base:
  model: {name: moe, flavour: 8x7B, seq_len: 4096}
  data: {name: synthetic, vocab_size: 32000}
  precision: bf16
  mesh: {dp_shard: 8, ep: 8}
  parallel: {dp_shard: fsdp, ep: ep}
  train: {steps: 1, global_batch: 8, micro_batch: 1}
grid:
  product: {memory: [none, full, selective_op]}
)"),
                          "--json", "--rank", "3"});
  ASSERT_EQ(dry.exit_code, 0) << dry.out << dry.err;
  constexpr int64_t kMessage = 32 * 2 * 4096ll * 4096 * 2 * 7 / 8;  // one per layer
  const json document = json::parse(dry.out).at("runs");
  ASSERT_EQ(document.size(), 3u);
  for (const json& cell : document) {
    EXPECT_EQ(cell.at("parameters"), 46'702'792'704);
    std::map<std::string, int64_t> wire;
    for (const json& row : cell.at("collectives")) {
      if (row.at("grp") != "ep" || row.at("phase") == "control") continue;
      wire[row.at("phase").get<std::string>()] += row.at("wire_bytes").get<int64_t>();
    }
    const bool again = cell.at("cell") == "full";  // selective_op keeps what was sent
    EXPECT_EQ(wire.at("forward"), 2 * kMessage) << cell.at("cell");
    EXPECT_EQ(wire.at("backward"), (again ? 4 : 2) * kMessage) << cell.at("cell");
  }
}

}  // namespace
}  // namespace assay
