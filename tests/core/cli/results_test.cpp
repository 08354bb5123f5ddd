// The commands that read results, run in this process over a database with every kind of run.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "core/base/files.h"
#include "core/store/reader.h"
#include "tests/core/cli/command.h"
#include "tests/core/report/sample_report.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using store::integer;

Answer command_on(const fs::path& database, std::vector<std::string> words) {
  words.insert(words.end(), {"--db", database.string()});
  return assay_command(std::move(words));
}

class Results : public testing::Test {
 protected:
  Answer run(std::vector<std::string> words) {
    return command_on(sample_.file(), std::move(words));
  }
  int64_t run_id(const std::string& state) {
    return *store::integer(store::Reader(sample_.file())
                               .query("SELECT min(run_id) FROM runs WHERE state='" + state + "'")
                               .rows.at(0)[0]);
  }
  void set_log(int64_t run_id, const fs::path& file) {
    auto& store = sample_.sample().store;
    const auto attempt =
        *integer(store.query("SELECT max(attempt_id) FROM attempts WHERE run_id=?1", {run_id})
                     .rows.at(0)[0]);
    store.start_attempt(attempt, {.log_path = file.string()});
  }

  report::SampleReport sample_;
  store::TempFolder folder_;
};

TEST_F(Results, StatusCountsStatesAndSaysWhatToDo) {
  const Answer answer = run({"status"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_NE(answer.out.find("layouts: 6 runs of 3 cells (1 points of the grid became no cell)"),
            std::string::npos)
      << answer.out;
  EXPECT_NE(answer.out.find("3 ok   1 oom   1 fail   1 queued"), std::string::npos) << answer.out;
  EXPECT_NE(answer.out.find("supervisor pid 1: dead"), std::string::npos) << answer.out;
  EXPECT_NE(answer.out.find("assay resume layouts"), std::string::npos);
  EXPECT_NE(answer.out.find("OOM: out of memory in backward"), std::string::npos);
}

TEST_F(Results, StatusFailedListsOnlyThose) {
  const Answer answer = run({"status", "layouts", "--failed"});
  EXPECT_EQ(answer.out.find("queued"), std::string::npos) << answer.out;
  EXPECT_NE(answer.out.find("FAIL: optim/lion"), std::string::npos);
}

TEST_F(Results, StatusIsADocumentForPrograms) {
  const auto document = nlohmann::json::parse(run({"status", "--json"}).out);
  EXPECT_EQ(document["schema_version"], 1);
  EXPECT_EQ(document["counts"]["ok"], 3);
  EXPECT_EQ(document["not_ok"].size(), 2u);
  EXPECT_FALSE(document["supervised"].get<bool>());
}

TEST_F(Results, WatchEndsWhenNobodyIsAtWork) { EXPECT_EQ(run({"status", "--watch"}).code, 0); }

TEST_F(Results, CompareShowsRangesAndTheCommandForAVerdict) {
  const Answer answer = run({"compare", "layouts", "--baseline", "float8"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_NE(answer.out.find("float8 *"), std::string::npos) << answer.out;
  EXPECT_NE(answer.out.find("Measured over 3 of 6 runs"), std::string::npos);
  EXPECT_NE(answer.out.find("for a verdict: assay compare layouts --pairs 20 --db "),
            std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(run({"compare", "--json"}).out)["rows"].size(), 3u);
}

TEST_F(Results, AVerdictIsNotFaked) {
  const Answer answer =
      run({"compare", "layouts", "--baseline", "bf16", "--candidate", "float8", "--no-run"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_NE(answer.out.find("float8 against bf16   no pairs"), std::string::npos) << answer.out;
  EXPECT_NE(answer.out.find("UNRESOLVED"), std::string::npos);
  EXPECT_NE(answer.out.find("unresolved: step_time (no_pairs); about 20 more pairs would settle it:"
                            " assay compare layouts --db "),
            std::string::npos)
      << answer.out;
  EXPECT_NE(answer.out.find("final_val_loss (too_few); about 2 more seeds"), std::string::npos);
  EXPECT_NE(answer.out.find("loss tier T2: "), std::string::npos);
  EXPECT_EQ(run({"compare", "--baseline", "bf16", "--no-run", "--need-verdict"}).code, 3);
}

TEST_F(Results, VerdictFlagsAreChecked) {
  EXPECT_NE(run({"compare", "--pairs", "7"}).err.find("must be even"), std::string::npos);
  EXPECT_NE(run({"compare", "--allow", "L99"}).err.find("no rule 'L99'"), std::string::npos);
  EXPECT_NE(run({"compare", "--baseline", "bf16", "--min-effect", "0.01", "--same-margin", "0.02"})
                .err.find("both SAME and FASTER"),
            std::string::npos);
}

TEST_F(Results, VerdictsAreADocumentForPrograms) {
  const auto document = nlohmann::json::parse(
      run({"compare", "layouts", "--baseline", "bf16", "--no-run", "--json"}).out);
  ASSERT_EQ(document["comparisons"].size(), 2u);
  const auto& first = document["comparisons"][0];
  EXPECT_EQ(first["candidate"], "float8");
  EXPECT_EQ(first["tier"], "T2");
  EXPECT_EQ(first["verdicts"][0]["metric"], "step_time");
  EXPECT_TRUE(first["verdicts"][0]["estimate"].is_null());
}

TEST_F(Results, AGateOfOneDatabaseAgainstItselfPasses) {
  const std::string file = sample_.file().string();
  const Answer answer = run({"gate", "--baseline-db", file, "--candidate-db", file});
  EXPECT_EQ(answer.code, 0) << answer.out << answer.err;
  EXPECT_NE(answer.out.find("peak_allocated_bytes"), std::string::npos) << answer.out;
  EXPECT_NE(answer.out.find("step_time    not gated"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(
                run({"gate", "--baseline-db", file, "--candidate-db", file, "--json"}).out)
                .at("outcome"),
            "pass");
}

TEST_F(Results, TheGateFindsWhatGrew) {
  const fs::path head = folder_ / "head.db";
  sample_.sample().store.checkpoint();
  fs::copy_file(sample_.file(), head);
  {
    store::Store store(head);
    const int64_t attempt = *integer(
        store.query("SELECT attempt_id FROM v_run WHERE state='ok' ORDER BY run_id").rows.at(0)[0]);
    const std::vector<store::Metric> more = {
        {.name = "wire_bytes", .value = 101, .unit = "bytes/step", .formula_id = "comm.bytes.v1"}};
    store.put_metrics(attempt, more);
    store.checkpoint();
  }
  const Answer answer =
      run({"gate", "--baseline-db", sample_.file().string(), "--candidate-db", head.string()});
  EXPECT_EQ(answer.code, 1) << answer.out << answer.err;
  EXPECT_NE(answer.out.find("wire_bytes: 100 -> 101 (+1 %)"), std::string::npos) << answer.out;
}

TEST_F(Results, AnEmptyGateIsNeverGreen) {
  const fs::path empty = folder_ / "empty.db";
  {
    store::Store store(empty);
    store.add_env(store::sample_env());
    store.add_study(store::sample_study());
  }
  const std::string file = sample_.file().string();
  EXPECT_EQ(run({"gate", "--baseline-db", empty.string(), "--candidate-db", file}).code, 4);
  EXPECT_EQ(run({"gate", "--baseline-db", file, "--candidate-db", empty.string()}).code, 4);
}

TEST_F(Results, TheGateSaysWhatItNeeds) {
  const Answer answer = run({"gate"});
  EXPECT_EQ(answer.code, 2);
  EXPECT_NE(answer.err.find("the gate compares two builds"), std::string::npos) << answer.err;
  EXPECT_EQ(run({"gate", "--baseline-db", "a.db"}).code, 2);
  EXPECT_EQ(run({"gate", "accept", "ci.yaml", "--metric", "wire_bytes"}).code, 2) << "no reason";
}

TEST_F(Results, MistypedNamesAreSuggested) {
  EXPECT_NE(run({"compare", "layuots"}).err.find("did you mean 'layouts'?"), std::string::npos);
  EXPECT_NE(run({"compare", "--baseline", "flaot8"}).err.find("did you mean 'float8'?"),
            std::string::npos);
  EXPECT_NE(run({"compare", "--metric", "step_p91_s"}).err.find("step_p90_s"), std::string::npos);
  EXPECT_EQ(run({"status", "nothing-like-it"}).code, 2);
}

TEST_F(Results, ReportWritesItsFiles) {
  const fs::path out = folder_ / "made/here";
  const Answer answer =
      run({"report", "layouts", "--format", "md,csv,json", "--out", out.string()});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_TRUE(read_file(out / "layouts.md").starts_with("### layouts"));
  EXPECT_TRUE(read_file(out / "layouts.csv").starts_with("study,cell,"));
  EXPECT_EQ(
      nlohmann::json::parse(read_file(out / "layouts.json"))["runs"][0]["steps"]["step"].size(),
      41u);
  EXPECT_EQ(run({"report", "--format", "word", "--out", out.string()}).code, 2);
}

TEST_F(Results, ReportWritesPagesForPeopleAndFilesForPrograms) {
  const fs::path out = folder_ / "formats";
  const Answer answer = run(
      {"report", "layouts", "--format", "html,junit,tensorboard,mlflow", "--out", out.string()});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_TRUE(read_file(out / "layouts.html").starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(read_file(out / "layouts.junit.xml").starts_with("<?xml"));
  int events = 0, metas = 0;
  for (const auto& entry : fs::recursive_directory_iterator(out)) {
    const std::string name = entry.path().filename().string();
    events += name.starts_with("events.out.tfevents.");
    metas += name == "meta.yaml";
  }
  EXPECT_EQ(events, 3);
  EXPECT_EQ(metas, 7);  // the experiment and six runs
  EXPECT_NE(answer.err.find("mlflow migrate-filestore --source"), std::string::npos);
}

TEST_F(Results, ReportForGithubAddsToTheSummaryOfTheJob) {
  unsetenv("GITHUB_STEP_SUMMARY");
  const Answer missing = run({"report", "--format", "github"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_NE(missing.err.find("GITHUB_STEP_SUMMARY"), std::string::npos);
  const fs::path summary = folder_ / "summary.md";
  std::ofstream(summary) << "before\n";
  setenv("GITHUB_STEP_SUMMARY", summary.c_str(), 1);
  const Answer answer = run({"report", "--format", "github"});
  unsetenv("GITHUB_STEP_SUMMARY");
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_TRUE(read_file(summary).starts_with("before\n### layouts"));
  EXPECT_NE(answer.out.find("::error::float8: FAIL"), std::string::npos) << answer.out;
}

TEST_F(Results, HistoryOfACell) {
  const Answer answer = run({"history", "bf16"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_NE(answer.out.find("machine 7c1e04: 2 runs, 0 changes"), std::string::npos) << answer.out;
  const auto document = nlohmann::json::parse(run({"history", "bf16", "--json"}).out);
  EXPECT_EQ(document["series"][0]["points"].size(), 2u);
  EXPECT_TRUE(nlohmann::json::parse(
                  run({"history", "bf16", "--since", "2999-01-01", "--json"}).out)["series"]
                  .empty());
  EXPECT_NE(run({"history", "bf16", "--since", "tomorrow"}).err.find("--since must be a date"),
            std::string::npos);
  EXPECT_NE(run({"history", "bf61"}).err.find("did you mean 'bf16'?"), std::string::npos);
}

TEST_F(Results, GcShowsFirstAndDeletesWhenTold) {
  const fs::path cache = folder_ / "cache";
  setenv("ASSAY_CACHE_DIR", cache.c_str(), 1);
  const fs::path log = sample_.file().parent_path() / "runs/float8--aa/r0.1/rank0.log";
  fs::create_directories(log.parent_path());
  std::ofstream(log) << "words\n";
  set_log(run_id("fail"), log);
  const Answer young = run({"gc"});
  EXPECT_EQ(young.code, 0) << young.err;
  EXPECT_NE(young.out.find("nothing is older than 30d"), std::string::npos) << young.out;
  const Answer dry = run({"gc", "--older", "0s", "--kinds", "logs"});
  EXPECT_NE(dry.out.find("logs: 1 files"), std::string::npos) << dry.out;
  EXPECT_NE(dry.out.find("nothing was deleted; this deletes it: assay gc --older 0s --yes"),
            std::string::npos);
  EXPECT_TRUE(fs::exists(log));
  EXPECT_NE(run({"gc", "--older", "0s", "--kinds", "logs", "--yes"}).out.find("deleted: "),
            std::string::npos);
  EXPECT_FALSE(fs::exists(log));
  EXPECT_EQ(run({"gc", "--older", "soon"}).code, 2);
  unsetenv("ASSAY_CACHE_DIR");
}

TEST_F(Results, ReportIntoAFileIsRefused) {
  std::ofstream(folder_ / "file") << "x";
  const Answer answer = run({"report", "--out", (folder_ / "file/sub").string()});
  EXPECT_EQ(answer.code, 2);
  EXPECT_NE(answer.err.find("cannot create the folder"), std::string::npos) << answer.err;
}

TEST_F(Results, SqlAnswersInThreeForms) {
  const std::string query =
      "SELECT slug, median(tokens_per_s) t, NULL n FROM v_cell GROUP BY slug ORDER BY slug";
  const Answer text = run({"sql", query});
  EXPECT_TRUE(text.out.starts_with("slug")) << text.out << text.err;
  EXPECT_TRUE(run({"sql", "--csv", query}).out.starts_with("slug,t,n\r\nbf16,"));
  const auto document = nlohmann::json::parse(run({"sql", query, "--json"}).out);
  EXPECT_EQ(document["rows"].size(), 3u);
  EXPECT_TRUE(document["rows"][0][2].is_null());
}

TEST_F(Results, SqlIsReadOnlyAndNamesMistakes) {
  EXPECT_EQ(run({"sql", "DELETE FROM runs"}).code, 2);
  EXPECT_NE(run({"sql", "SELECT * FROM v_rum"}).err.find("no such table: v_rum"),
            std::string::npos);
  EXPECT_NE(run({"sql", "SELECT 1; SELECT 2"}).err.find("one SQL statement at a time"),
            std::string::npos);
  EXPECT_NE(run({"sql", "SELECT 1", "--timeout", "soon"}).err.find("--timeout must be a time"),
            std::string::npos);
}

TEST_F(Results, DiffNeedsTracedRuns) {
  const Answer untraced = run({"diff", "1", "2"});
  EXPECT_EQ(untraced.code, 2);
  EXPECT_NE(untraced.err.find("run 1 ("), std::string::npos) << untraced.err;
  EXPECT_NE(untraced.err.find("train.trace=blocks"), std::string::npos) << untraced.err;
  EXPECT_NE(run({"diff", "1", "999"}).err.find("no trace"), std::string::npos);
  EXPECT_NE(run({"diff", "999", "1"}).err.find("there is no run 999"), std::string::npos);
}

TEST_F(Results, LogShowsTheEndOfTheRanksOutput) {
  const fs::path log = folder_ / "rank0.log";
  std::ofstream(log) << "one\ntwo\nthree\n";
  std::ofstream(folder_ / "rank1.log") << "other rank\n";
  const int64_t id = run_id("fail");
  set_log(id, log);
  EXPECT_EQ(run({"log", std::to_string(id)}).out, "one\ntwo\nthree\n");
  EXPECT_EQ(run({"log", std::to_string(id), "-n", "2"}).out, "two\nthree\n");
  EXPECT_EQ(run({"log", std::to_string(id), "--rank", "1"}).out, "other rank\n");
  EXPECT_EQ(run({"log", std::to_string(id), "--follow"}).out, "one\ntwo\nthree\n");
  EXPECT_NE(run({"log", std::to_string(id)}).err.find("FAIL: optim/lion"), std::string::npos);
}

TEST_F(Results, LogThatIsGoneOrNeverWas) {
  const int64_t id = run_id("fail");
  set_log(id, folder_ / "gone.log");
  const Answer gone = run({"log", std::to_string(id)});
  EXPECT_EQ(gone.code, 2);
  EXPECT_NE(gone.err.find("is gone"), std::string::npos) << gone.err;
  EXPECT_NE(run({"log", "4711"}).err.find("there is no run 4711"), std::string::npos);
  EXPECT_NE(run({"log", "4711"}).err.find("runs 1 to 6 are there"), std::string::npos);
  EXPECT_NE(run({"log", std::to_string(run_id("queued"))}).err.find("has not started"),
            std::string::npos);
}

TEST_F(Results, ExportIsAStudyOfItsOwn) {
  const fs::path log = folder_ / "rank0.log";
  std::ofstream(log) << "words\n";
  std::ofstream(folder_ / "rank1.log") << "more\n";
  const int64_t id = run_id("fail");
  set_log(id, log);
  const fs::path out = folder_ / "out";
  const Answer answer = run({"export", "layouts", "--out", out.string()});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_NE(answer.out.find("3 cells, 5 ended runs"), std::string::npos) << answer.out;
  EXPECT_TRUE(read_file(out / "layouts.yaml").starts_with("assay: 1"));
  const Answer copy = command_on(out / "assay.db", {"compare", "layouts", "--json"});
  const auto rows = nlohmann::json::parse(copy.out)["rows"];
  EXPECT_EQ(rows, nlohmann::json::parse(run({"compare", "layouts", "--json"}).out)["rows"]);
  EXPECT_EQ(run({"export", "layouts", "--out", out.string()}).code, 2);  // never over another
  int logs = 0;
  for (const auto& entry : fs::recursive_directory_iterator(out / "runs")) {
    logs += entry.path().extension() == ".log";
  }
  EXPECT_EQ(logs, 2);
}

TEST_F(Results, DbChecksDescribesMigratesAndMerges) {
  EXPECT_NE(run({"db", "check"}).out.find("is sound"), std::string::npos);
  EXPECT_NE(run({"db", "info"}).out.find("user_version"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(run({"db", "info", "--json"}).out)["runs"], 6);
  EXPECT_NE(run({"db", "migrate"}).out.find("nothing to do"), std::string::npos);
  const Answer merged = command_on(folder_ / "new.db", {"db", "merge", sample_.file().string()});
  EXPECT_EQ(merged.code, 0) << merged.err;
  EXPECT_NE(merged.out.find("5 runs with"), std::string::npos) << merged.out;
  EXPECT_EQ(run({"db", "merge", sample_.file().string()}).code, 2);  // itself
  EXPECT_EQ(run({"db"}).code, 2);
}

TEST(NoResults, MissingAndEmptyDatabasesSayWhatToDo) {
  store::TempFolder folder;
  const Answer missing = command_on(folder / "none.db", {"status"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_NE(missing.err.find("there is no results database"), std::string::npos) << missing.err;
  EXPECT_NE(missing.err.find("assay run STUDY.yaml"), std::string::npos);
  { store::Store empty(folder / "empty.db"); }
  EXPECT_NE(command_on(folder / "empty.db", {"compare"}).err.find("holds no study yet"),
            std::string::npos);
  EXPECT_NE(command_on(folder / "empty.db", {"log", "1"}).err.find("holds no run yet"),
            std::string::npos);
}

}  // namespace
}  // namespace assay::cli
