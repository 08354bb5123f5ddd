// Checkpoints of the built program: kill -9 while saving, resume, show, convert.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "core/base/files.h"
#include "core/base/subprocess.h"
#include "core/checkpoint/folder.h"
#include "core/checkpoint/reader.h"
#include "core/checkpoint/safetensors.h"
#include "core/checkpoint/verify.h"
#include "core/store/reader.h"
#include "tests/end_to_end/checkpoint/killed_worker.h"

namespace assay {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr double kLimitS = 250;

class Checkpoints : public testing::Test {
 protected:
  Checkpoints()
      : folder_(fs::temp_directory_path() / ("assay-e2e-checkpoint-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~Checkpoints() override { fs::remove_all(folder_); }

  std::string study(const std::string& name, const std::string& train) const {
    std::ofstream(folder_ / (name + ".yaml"))
        << "assay: 1\nstudy: " << name << "\nbase:\n"
        << "  model: {name: llama3, flavour: tiny, seq_len: 16, layers: 2}\n"
        << "  data: {name: synthetic}\n"
        << "  train: {global_batch: 2, threads_per_rank: 1, schedule: constant, warmup: 0, "
        << train << "}\ngrid: {product: {seed: [1]}}\nrun: {timed: false}\n";
    return (folder_ / (name + ".yaml")).string();
  }
  ProcessResult assay(std::vector<std::string> arguments) const {
    std::vector<std::string> command = {std::string(ASSAY_BIN) + "/assay"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.insert(command.end(), {"--db", (folder_ / "a.db").string()});
    return run_process(command, kLimitS);
  }
  store::Table query(const std::string& sql) const {
    return store::Reader(folder_ / "a.db").query(sql, {});
  }
  /// Of the newest attempt of a study.
  fs::path attempt_folder(const std::string& name) const {
    const auto row = query(
        "SELECT a.log_path FROM attempts a JOIN runs r USING(run_id) JOIN study_cells s"
        " USING(cell_id) JOIN studies t USING(study_id) WHERE t.name='" +
        name + "' ORDER BY attempt_id DESC LIMIT 1");
    return fs::path(*store::text(row.at(0, "log_path"))).parent_path();
  }
  std::vector<int64_t> loss_bits(const std::string& name) const {
    const auto table = query(
        "SELECT x.loss_bits FROM steps x JOIN attempts a USING(attempt_id) JOIN runs r"
        " USING(run_id) JOIN study_cells s USING(cell_id) JOIN studies t USING(study_id)"
        " WHERE t.name='" +
        name + "' AND x.kind IN('warmup','steady') ORDER BY x.step");
    std::vector<int64_t> bits;
    for (size_t i = 0; i < table.rows.size(); ++i) {
      bits.push_back(*store::integer(table.at(i, "loss_bits")));
    }
    return bits;
  }

  const fs::path folder_;
};

std::vector<std::byte> whole_tensor(checkpoint::Reader& reader, const std::string& name) {
  const auto& tensor = reader.manifest().tensors.at(name);
  const auto all = checkpoint::whole(tensor.shape);
  std::vector<std::byte> bytes(static_cast<size_t>(checkpoint::volume(all)) *
                               checkpoint::element_bytes(tensor.dtype));
  reader.read(name, all, bytes.data());
  return bytes;
}

/// Twelve kills at random changes of the folder; after each, what is there is whole, and the next
/// worker goes on from it. The last checkpoint has the bits of a run that was never killed.
TEST_F(Checkpoints, KillNineWhileSavingLeavesTheOneBeforeWhole) {
  ASSERT_EQ(assay({"run", study("seed", "steps: 1")}).exit_code, 0);
  auto cell = nlohmann::json::parse(read_file(attempt_folder("seed") / "cell.json"));
  const fs::path run = folder_ / "killed", saved = run / checkpoint::kFolderName;
  fs::create_directories(saved);
  cell["config"]["train"].update({{"steps", 100000}, {"checkpoint_every", 1}, {"keep", 3}});
  cell["spool_dir"] = run.string();
  cell["rendezvous"] = run.string();
  cell.erase("scheduled_monotonic_s");
  std::mt19937 random(20);
  std::uniform_int_distribution<int> events(1, 90);
  int64_t step = 0;
  for (int trial = 1; trial <= 12; ++trial) {
    cell["attempt_id"] = trial;
    cell["config"]["train"]["checkpoint_async"] = trial % 2 == 0;
    cell["resume_from"] = step > 0 ? nlohmann::json(saved.string()) : nlohmann::json();
    std::ofstream(run / "cell.json") << cell.dump();
    const int limit = events(random);
    const int seen = run_and_kill({std::string(ASSAY_BIN) + "/assay-worker", "run",
                                   (run / "cell.json").string(), "--rank", "0"},
                                  saved, limit);
    ASSERT_EQ(seen, limit) << "the worker ended by itself";
    for (const auto& found : checkpoint::saved_steps(saved)) {
      const auto damage = checkpoint::find_damage(found.folder);
      EXPECT_TRUE(damage.empty()) << "kill " << trial << " after " << limit
                                  << " changes: " << print(damage.front());
    }
    if (checkpoint::saved_steps(saved).empty()) continue;
    const auto newest = checkpoint::read_manifest(checkpoint::find_checkpoint(saved)).step;
    EXPECT_GE(newest, step) << "what was saved once stays";
    step = newest;
  }
  ASSERT_GT(step, 0);

  const std::string steps = std::to_string(step);
  ASSERT_EQ(
      assay({"run", study("whole", "steps: " + steps + ", checkpoint_every: " + steps)}).exit_code,
      0);
  checkpoint::Reader killed(checkpoint::find_checkpoint(saved));
  checkpoint::Reader whole(checkpoint::find_checkpoint(attempt_folder("whole")));
  ASSERT_EQ(killed.manifest().step, whole.manifest().step);
  for (const auto& [name, tensor] : whole.manifest().tensors) {
    EXPECT_EQ(whole_tensor(killed, name), whole_tensor(whole, name)) << name;
  }
}

TEST_F(Checkpoints, AResumedRunGoesOnInBitsAndHasNoTiming) {
  ASSERT_EQ(assay({"run", study("short", "steps: 5, checkpoint_every: 5")}).exit_code, 0);
  ASSERT_EQ(assay({"run", study("whole", "steps: 10, eval_every: 5")}).exit_code, 0);
  const auto resumed =
      assay({"run", study("rest", "steps: 10"), "--resume-from", attempt_folder("short").string()});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  const auto whole = loss_bits("whole");
  ASSERT_EQ(whole.size(), 10u);
  EXPECT_EQ(loss_bits("rest"), std::vector<int64_t>(whole.begin() + 5, whole.end()));
  const auto run = query(
      "SELECT r.* FROM v_run r JOIN study_cells s USING(cell_id) JOIN studies t USING(study_id)"
      " WHERE t.name='rest'");
  EXPECT_EQ(store::integer(run.at(0, "resumed_step")), 5);
  EXPECT_FALSE(store::real(run.at(0, "tokens_per_s")).has_value());
  EXPECT_TRUE(store::real(run.at(0, "final_val_loss")).has_value());
}

TEST_F(Checkpoints, ResumeTakesEachRunsOwnNewest) {
  const std::string file = study("own", "steps: 6, checkpoint_every: 2");
  ASSERT_EQ(assay({"run", file}).exit_code, 0);
  const auto step = assay({"run", file, "--only", "ok", "--resume-from", "4"});
  ASSERT_EQ(step.exit_code, 0) << step.err;
  const auto row = query("SELECT resumed_step FROM v_run");
  EXPECT_EQ(store::integer(row.at(0, "resumed_step")), 4);
  const auto absent = assay({"run", file, "--only", "ok", "--resume-from", "3"});
  EXPECT_EQ(absent.exit_code, 2);
  EXPECT_THAT(absent.err,
              HasSubstr("error[R-CKPT]: no earlier attempt has a checkpoint of step 3"));
  const auto nowhere = assay({"run", file, "--resume-from", (folder_ / "nowhere").string()});
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("there is no checkpoint in"));
}

TEST_F(Checkpoints, ARunThatDoesNotFitFailsWithTheNames) {
  ASSERT_EQ(assay({"run", study("adamw", "steps: 2, checkpoint_every: 2")}).exit_code, 0);
  const std::string other = study("lion", "steps: 4");
  const auto result = assay({"run", other, "--set", "optim.name=lion", "--resume-from",
                             attempt_folder("adamw").string()});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const auto row =
      query("SELECT reason, stderr_tail FROM attempts ORDER BY attempt_id DESC LIMIT 1");
  EXPECT_THAT(*store::text(row.at(0, "stderr_tail")),
              HasSubstr("extra        optim/v/lm_head.weight"));
}

TEST_F(Checkpoints, ShowPrintsBoxesAndFindsDamage) {
  ASSERT_EQ(assay({"run", study("shown", "steps: 2, checkpoint_every: 2")}).exit_code, 0);
  const fs::path run = attempt_folder("shown");
  const auto good = assay({"checkpoint", "show", run.string()});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("step        2 (4 sequences of 16 tokens, 2 a step)"));
  EXPECT_THAT(good.out, HasSubstr("optim/m/lm_head.weight"));
  EXPECT_THAT(good.out, HasSubstr("chunks match their checksums"));
  const auto document =
      nlohmann::json::parse(assay({"checkpoint", "show", run.string(), "--json"}).out);
  EXPECT_EQ(document.at("step"), 2);
  EXPECT_TRUE(document.at("damage").empty());

  const auto chunk = document.at("tensors").at("lm_head.weight").at("chunks").at(0);
  const fs::path file =
      fs::path(document.at("folder").get<std::string>()) / chunk.at("file").get<std::string>();
  {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(chunk.at("offset").get<std::streamoff>() + 3);
    stream.put('\x55');
  }
  const auto bad = assay({"checkpoint", "show", run.string()});
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_THAT(bad.out, HasSubstr("damaged: rank-00000.safetensors: 'lm_head.weight', chunk [0:"));
  EXPECT_EQ(assay({"checkpoint", "show", (folder_ / "nothing").string()}).exit_code, 2);
}

TEST_F(Checkpoints, ConvertedWeightsStartARun) {
  ASSERT_EQ(assay({"run", study("trained", "steps: 3, checkpoint_every: 3, save_weights: true")})
                .exit_code,
            0);
  const fs::path run = attempt_folder("trained"), out = folder_ / "model.safetensors";
  const auto done = assay({"checkpoint", "convert", run.string(), out.string()});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("step 3"));
  const auto ours = checkpoint::read_header(out);
  const auto exported = checkpoint::read_header(run / "model.safetensors");
  ASSERT_EQ(ours.size(), exported.size());
  EXPECT_EQ(sha256_file(out), sha256_file(run / "model.safetensors"));
  EXPECT_EQ(assay({"checkpoint", "convert", run.string(), out.string(), "--dtype", "F4"}).exit_code,
            2);
  ASSERT_EQ(assay({"run", study("from", "steps: 1, init_from: model.safetensors")}).exit_code, 0);
}

}  // namespace
}  // namespace assay
