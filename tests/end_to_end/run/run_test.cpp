// assay run from a YAML file to stored numbers, with and without the template process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/base/subprocess.h"
#include "core/store/reader.h"

namespace assay {
namespace {

using testing::HasSubstr;

constexpr double kLimitS = 250;
constexpr const char* kStudy = R"(assay: 1
study: tiny
base:
  model: {name: llama3, flavour: tiny, seq_len: 32}
  data: {name: synthetic}
  train: {steps: 4, global_batch: 2, threads_per_rank: 1}
grid:
  product:
    memory: [none, full]
run: {timed: false}
)";

class Run : public testing::Test {
 protected:
  Run()
      : folder_(std::filesystem::temp_directory_path() /
                ("assay-run-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
    write("tiny.yaml", kStudy);
  }
  ~Run() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  ProcessResult assay(std::vector<std::string> arguments, const std::string& database = "a.db") {
    std::vector<std::string> command = {std::string(ASSAY_BIN) + "/assay"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.insert(command.end(), {"--db", (folder_ / database).string()});
    return run_process(command, kLimitS);
  }
  std::vector<int64_t> bits(const std::string& database) {
    const auto table = store::Reader(folder_ / database)
                           .query(
                               "SELECT c.slug, s.step, s.loss_bits FROM steps s JOIN attempts a"
                               " USING(attempt_id) JOIN runs r USING(run_id) JOIN study_cells c"
                               " USING(cell_id) WHERE s.kind<>'eval' ORDER BY 1, 2",
                               {});
    std::vector<int64_t> values;
    for (size_t i = 0; i < table.rows.size(); ++i) {
      values.push_back(*store::integer(table.at(i, "loss_bits")));
    }
    return values;
  }
  std::string study() const { return (folder_ / "tiny.yaml").string(); }
  const std::filesystem::path folder_;
};

TEST_F(Run, TemplateAndExecGiveTheSameBits) {
  const auto with = assay({"run", study()}, "template/a.db");
  ASSERT_EQ(with.exit_code, 0) << with.out << with.err;
  EXPECT_THAT(with.err, HasSubstr("2 of 2 done: 2 ok"));
  EXPECT_THAT(with.out, HasSubstr("tiny"));
  const auto without = assay({"run", study(), "--no-template"}, "exec/a.db");
  ASSERT_EQ(without.exit_code, 0) << without.out << without.err;
  EXPECT_EQ(bits("template/a.db").size(), 8u);
  EXPECT_EQ(bits("template/a.db"), bits("exec/a.db"));
}

TEST_F(Run, TrialsChooseEachOptimizersLearningRate) {
  write("tuned.yaml", R"(assay: 1
study: tuned
base:
  model: {name: llama3, flavour: tiny, seq_len: 16, layers: 1}
  data: synthetic
  train: {steps: 6, global_batch: 2, threads_per_rank: 1, eval_batches: 1}
tune: {key: optim.lr, factors: [0.01, 1], steps: 4, seeds: [101]}
compare:
  baseline: {label: adamw, set: {optim: adamw}}
  candidates: [{label: lion, set: {optim: lion}}]
  pairs: 0
  loss: {seeds: [1, 2], margin: 0.5}
run: {timed: false}
)");
  const std::string file = (folder_ / "tuned.yaml").string();
  const auto plan = assay({"plan", file});
  EXPECT_THAT(plan.out, HasSubstr("tune: 4 trials of 4 steps come first: optim.lr times 0.01, 1"));
  const auto first = assay({"run", file});
  ASSERT_EQ(first.exit_code, 0) << first.out << first.err;
  EXPECT_THAT(first.err, HasSubstr("4 of 4 done: 4 ok"));  // trials, then cells
  EXPECT_THAT(first.err, HasSubstr("tuned  lion  optim.lr"));
  EXPECT_THAT(first.err, testing::Not(HasSubstr("L09")));
  EXPECT_THAT(first.out, HasSubstr("(best of 2 trials of 4 steps, at the end of its list)"));
  EXPECT_EQ(assay({"resume", "tuned-tune"}).exit_code, 0);  // nothing is left of the trials
  const auto trials = assay({"compare", "tuned-tune"});
  EXPECT_THAT(trials.out, HasSubstr("adamw_x0.01"));
  EXPECT_THAT(trials.out, HasSubstr("Measured over 4 of 4 runs"));
  const auto again = assay({"run", file});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  const store::Reader reader(folder_ / "a.db");
  const auto chosen = reader.query(
      "SELECT DISTINCT t.arm, t.value_json->>'$.\"optim.lr\"' tried, c.config_json->>'$.optim.lr' "
      "lr"
      " FROM trials t JOIN study_cells s USING(study_id) JOIN cells c ON c.cell_id=s.cell_id AND"
      " c.config_json->>'$.optim.name'=t.arm WHERE t.chosen ORDER BY 1",
      {});
  ASSERT_EQ(chosen.rows.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(store::real(chosen.at(i, "tried")), store::real(chosen.at(i, "lr")));
  }
  const auto runs = reader.query("SELECT count(*) n FROM runs WHERE purpose='tune'", {});
  EXPECT_EQ(store::integer(runs.at(0, "n")), 4);  // not run again
  const auto others = reader.query(
      "SELECT count(*) n FROM runs JOIN study_cells USING(cell_id) JOIN studies USING(study_id)"
      " WHERE name='tuned-tune' AND purpose<>'tune'",
      {});
  EXPECT_EQ(store::integer(others.at(0, "n")), 0);
  const auto copy = assay({"export", "tuned", "--out", (folder_ / "copy").string()});
  ASSERT_EQ(copy.exit_code, 0) << copy.err;
  const auto fair = assay({"compare", "tuned", "--no-run"}, "copy/assay.db");
  EXPECT_EQ(fair.exit_code, 0) << fair.err;  // its trials came with it: no L09
  EXPECT_EQ(assay({"run", file, "--filter", "optim.name == 'lion'"}).exit_code, 2);
  write("names.yaml",
        "assay: 1\nstudy: names\nbase: {model: llama3, data: synthetic}\n"
        "grid: {product: {optim: [adamw, lion]}}\ntune: {steps: 4}\n"
        "compare: {baseline: adamw, candidates: [lino], pairs: 0}\n");
  const auto wrong = assay({"run", (folder_ / "names.yaml").string()}, "names.db");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean 'lion'"));
  EXPECT_THAT(wrong.err, testing::Not(HasSubstr("running")));  // before any trial
}

TEST_F(Run, WithoutValidationRowsThereIsNoValidationLoss) {
  const auto result = assay({"run", study(), "--set", "data.validation=0"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto rows = store::Reader(folder_ / "a.db")
                        .query(
                            "SELECT (SELECT count(*) FROM metrics WHERE name='final_val_loss') m,"
                            " (SELECT count(*) FROM steps WHERE kind='eval') s",
                            {});
  EXPECT_EQ(store::integer(rows.at(0, "m")), 0);
  EXPECT_EQ(store::integer(rows.at(0, "s")), 0);
}

TEST_F(Run, JsonEventsAreOneDocumentPerLine) {
  const auto result = assay({"run", study(), "--json", "--filter", "memory.name == 'none'"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::istringstream lines(result.out);
  nlohmann::json last;
  for (std::string line; std::getline(lines, line);) {
    last = nlohmann::json::parse(line);
    EXPECT_EQ(last.at("schema_version"), 1);
  }
  EXPECT_EQ(last.at("event"), "end");
  EXPECT_EQ(last.at("totals").at("ok"), 1);
}

TEST_F(Run, ASecondRunAndResumeHaveNothingToDo) {
  ASSERT_EQ(assay({"run", study()}).exit_code, 0);
  EXPECT_EQ(assay({"run", study()}).exit_code, 0);
  EXPECT_EQ(assay({"resume"}).exit_code, 0);
  EXPECT_EQ(bits("a.db").size(), 8u);
}

TEST_F(Run, MistakesEndWithCode2AndKeepTheDatabaseAway) {
  write("tiny.yaml", std::string(kStudy) + "bose: {}\n");
  const auto result = assay({"run", study()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("tiny.yaml:11:1: error"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.db"));
  EXPECT_EQ(assay({"resume"}).exit_code, 2);
}

/// What a launcher does: the cell file, and RANK and its kin; then assay import.
TEST_F(Run, RanksStartedByTorchrunAreImportedOnce) {
  ASSERT_EQ(assay({"run", study(), "--filter", "memory.name == 'none'"}).exit_code, 0);
  const store::Reader reader(folder_ / "a.db");
  const auto row = reader.query(
      "SELECT c.*, s.slug, a.log_path FROM attempts a JOIN runs r USING(run_id) JOIN cells c"
      " USING(cell_id) JOIN study_cells s USING(cell_id) LIMIT 1",
      {});
  const auto text = [&](const char* column) { return *store::text(row.at(0, column)); };
  const auto supervised = std::filesystem::path(text("log_path")).parent_path() / "cell.json";
  auto cell = nlohmann::json::parse(read_file(supervised));
  const auto spools = folder_ / "spools";
  std::filesystem::create_directories(spools / "rendezvous");
  cell.update({{"attempt_id", 0},
               {"spool_dir", spools.string()},
               {"rendezvous", (spools / "rendezvous").string()},
               {"study", "elsewhere"},
               {"recipe_id", text("recipe_id")},
               {"config_id", text("config_id")},
               {"data_fingerprint", text("data_fingerprint")}});
  cell.erase("scheduled_monotonic_s");
  write("cell.json", cell.dump());
  const auto rank = run_process(
      {std::string(ASSAY_BIN) + "/assay-worker", "run", (folder_ / "cell.json").string()}, kLimitS,
      {{"RANK", "0"},
       {"WORLD_SIZE", "1"},
       {"LOCAL_RANK", "0"},
       {"MASTER_ADDR", "localhost"},
       {"MASTER_PORT", "29500"}});
  ASSERT_EQ(rank.exit_code, 0) << rank.err;
  const auto first = assay({"import", spools.string()}, "b.db");
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("  ok  "));
  const auto second = assay({"import", spools.string()}, "b.db");
  EXPECT_THAT(second.out, HasSubstr("0 new rows"));
  EXPECT_EQ(bits("b.db").size(), 4u);
}

}  // namespace
}  // namespace assay
