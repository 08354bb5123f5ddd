// What a policy may delete and what it never may, on real files.
#include "core/store/retention.h"

#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "core/base/spool.h"
#include "core/store/spool_import.h"
#include "tests/core/store/sample_study.h"

namespace assay::store {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLater = 4'000'000'000'000'000;  // long after every run of this test

class Retention : public testing::Test {
 protected:
  Retention() : sample_(file()) {}

  fs::path file() const { return folder_ / "assay.db"; }
  fs::path runs() const { return folder_ / "runs"; }

  void write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::app) << text;
  }

  /// An attempt with a spool, two logs, a checkpoint and what a supervisor leaves.
  fs::path attempt(const std::string& state, bool imported = true) {
    const Claim claim = sample_.claim().value();
    const fs::path place =
        runs() / (claim.run.slug + "--aa") / ("r0." + std::to_string(claim.run.run_id));
    const fs::path spool = place / (std::to_string(claim.attempt_id) + ".r0.jl");
    for (const auto& row : spool_rows(claim.attempt_id)) write(spool, spool_line(row));
    import_spool(sample_.store, claim.attempt_id, 0, spool);
    if (!imported) write(spool, "0000");
    for (const char* name : {"rank0.log", "rank1.log", "cell.json", "rendezvous"}) {
      write(place / name, "words\n");
    }
    write(place / "checkpoint-40" / "weights", std::string(1000, 'x'));
    sample_.store.start_attempt(claim.attempt_id, {.log_path = (place / "rank0.log").string()});
    if (state != "running") sample_.store.finish_attempt(claim.attempt_id, {.state = state});
    return place;
  }

  RetentionPlan plan(RetentionPolicy policy = {}, int64_t now_us = kLater) {
    return plan_retention(Reader(file()), runs(), folder_ / "cache", policy, now_us);
  }

  static size_t count(const RetentionPlan& plan, Keepsake kind) {
    return static_cast<size_t>(
        std::count_if(plan.disposable.begin(), plan.disposable.end(),
                      [&](const Disposable& item) { return item.kind == kind; }));
  }

  TempFolder folder_;
  SampleStore sample_;
};

TEST_F(Retention, PlansEveryKindAndDeletesOnlyThen) {
  const fs::path place = attempt("ok");
  write(folder_ / "cache/facts/x.json", "12345");
  const RetentionPlan found = plan();
  EXPECT_EQ(count(found, Keepsake::spools), 1u);
  EXPECT_EQ(count(found, Keepsake::logs), 2u);
  EXPECT_EQ(count(found, Keepsake::checkpoints), 1u);
  EXPECT_EQ(count(found, Keepsake::caches), 1u);
  EXPECT_TRUE(found.kept.empty());
  EXPECT_TRUE(fs::exists(place / "rank0.log")) << "planning deleted a file";
  EXPECT_EQ(delete_all(found), found.bytes);
  EXPECT_FALSE(fs::exists(place)) << "an empty attempt folder was left";
  EXPECT_TRUE(fs::exists(runs()));
  EXPECT_TRUE(plan().disposable.empty());
  EXPECT_EQ(integer(sample_.store.query("SELECT count(*) FROM steps").rows[0][0]), 41);
}

TEST_F(Retention, AgeAndKindsNarrowIt) {
  const fs::path place = attempt("ok");
  const int64_t ended = *integer(sample_.store.query("SELECT ended_us FROM attempts").rows[0][0]);
  const int64_t day = int64_t{86400} * 1'000'000;
  EXPECT_TRUE(plan({.older_us = 30 * day}, ended + 29 * day).disposable.empty());
  EXPECT_FALSE(plan({.older_us = 30 * day}, ended + 31 * day).disposable.empty());
  const RetentionPlan logs = plan({.kinds = {Keepsake::logs}});
  EXPECT_EQ(logs.disposable.size(), 2u);
  delete_all(logs);
  EXPECT_TRUE(fs::exists(place / "cell.json")) << "a folder with a spool in it is not empty";
  EXPECT_TRUE(fs::exists(place / "checkpoint-40/weights"));
}

TEST_F(Retention, KeepsWhatRunsAndWhatIsNotImported) {
  attempt("running");
  attempt("killed", false);
  const RetentionPlan found = plan();
  EXPECT_EQ(count(found, Keepsake::spools), 0u);
  EXPECT_EQ(count(found, Keepsake::logs), 2u);  // of the killed one
  const auto says = [&](const std::string& words) {
    return std::any_of(found.kept.begin(), found.kept.end(), [&](const std::string& line) {
      return line.find(words) != std::string::npos;
    });
  };
  EXPECT_TRUE(says("its attempt is running"));
  EXPECT_TRUE(says("4 bytes of it are not imported"));
}

TEST_F(Retention, KeepsWhatABaselineNames) {
  attempt("ok");
  SQLite::Database(file().string(), SQLite::OPEN_READWRITE)
      .exec(
          "INSERT INTO baselines SELECT machine_id, 'g', cell_id, 'step_time', 'release', 1.0,"
          " run_id, 0 FROM runs WHERE state='ok'");
  const RetentionPlan found = plan();
  EXPECT_TRUE(found.disposable.empty());
  EXPECT_EQ(found.kept.size(), 4u);
}

TEST_F(Retention, NeverTouchesWhatItDoesNotKnow) {
  const fs::path place = attempt("ok");
  write(place / "notes.txt", "mine");
  write(runs() / "stranger/r0.1/9.r0.jl", "not in the database");
  const fs::path outside = folder_ / "elsewhere/2.r0.jl";
  const Claim claim = sample_.claim().value();
  for (const auto& row : spool_rows(claim.attempt_id)) write(outside, spool_line(row));
  import_spool(sample_.store, claim.attempt_id, 0, outside);
  sample_.store.finish_attempt(claim.attempt_id, {.state = "ok"});
  fs::create_symlink(outside, place / "link.log");
  delete_all(plan());
  EXPECT_TRUE(fs::exists(outside));
  EXPECT_TRUE(fs::exists(runs() / "stranger/r0.1/9.r0.jl"));
  EXPECT_TRUE(fs::exists(place / "notes.txt"));
  EXPECT_TRUE(fs::is_symlink(place / "link.log"));
}

}  // namespace
}  // namespace assay::store
