// The migration machinery, proved on made-up versions; stored databases of every released version.
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <gtest/gtest.h>

#include <thread>

#include "assay/error.h"
#include "core/store/check.h"
#include "core/store/reader.h"
#include "core/store/schema.h"
#include "tests/core/store/sample_study.h"

namespace assay::store {
namespace {

namespace fs = std::filesystem;

std::string schema_text(const fs::path& file) {
  SQLite::Database db(file.string());
  SQLite::Statement row(db,
                        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name");
  std::string all;
  while (row.executeStep()) all += row.getColumn(0).getString() + "\n";
  return all;
}

int version_of(const fs::path& file) {
  SQLite::Database db(file.string());
  return user_version(db);
}

/// A made-up history: version 1 has runs, 2 adds a column, 3 splits a table.
constexpr std::string_view kOne =
    "CREATE TABLE run(id INTEGER PRIMARY KEY, state TEXT, host TEXT) STRICT;";
constexpr std::string_view kTwo = "ALTER TABLE run ADD COLUMN reason TEXT;";
constexpr std::string_view kThree =
    "CREATE TABLE machine(name TEXT PRIMARY KEY) STRICT; INSERT INTO machine SELECT DISTINCT host "
    "FROM run;";
constexpr std::string_view kBroken = "CREATE TABLE half(x); INSERT INTO nowhere VALUES(1);";
constexpr std::string_view kDangling =
    "CREATE TABLE child(id INTEGER REFERENCES run(id)); INSERT INTO child VALUES(99);";

void make_version_zero(const fs::path& file) {
  SQLite::Database db(file.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  db.exec("PRAGMA journal_mode=WAL; PRAGMA application_id=" + std::to_string(kApplicationId));
}

TEST(Migrate, AppliesScriptsInOrderAndKeepsABackup) {
  TempFolder folder;
  const auto file = folder / "a.db";
  make_version_zero(file);
  const std::string_view first[] = {kOne};
  EXPECT_EQ(migrate(file, first).to, 1);
  SQLite::Database(file.string(), SQLite::OPEN_READWRITE)
      .exec("INSERT INTO run VALUES(1,'ok','h1')");

  const std::string_view all[] = {kOne, kTwo, kThree};
  const MigrationResult result = migrate(file, all);
  EXPECT_EQ(result.from, 1);
  EXPECT_EQ(result.to, 3);
  EXPECT_EQ(version_of(file), 3);
  SQLite::Database db(file.string());
  EXPECT_EQ(db.execAndGet("SELECT name FROM machine").getString(), "h1");
  EXPECT_EQ(result.backup, fs::path(file.string() + ".v1.bak"));
  EXPECT_EQ(version_of(result.backup), 1);
  EXPECT_EQ(
      SQLite::Database(result.backup.string()).execAndGet("SELECT state FROM run").getString(),
      "ok");
}

TEST(Migrate, DoesNothingTwice) {
  TempFolder folder;
  const auto file = folder / "a.db";
  make_version_zero(file);
  const std::string_view all[] = {kOne, kTwo};
  migrate(file, all);
  const MigrationResult again = migrate(file, all);
  EXPECT_EQ(again.from, again.to);
  EXPECT_TRUE(again.backup.empty());
}

TEST(Migrate, AFailureLeavesTheFileAsItWas) {
  TempFolder folder;
  const auto file = folder / "a.db";
  make_version_zero(file);
  const std::string_view first[] = {kOne};
  migrate(file, first);
  const std::string before = schema_text(file);
  const std::string_view broken[] = {kOne, kTwo, kBroken};
  EXPECT_THROW(migrate(file, broken), Error);
  const std::string_view dangling[] = {kOne, kDangling};
  EXPECT_THROW(migrate(file, dangling), Error);
  EXPECT_EQ(version_of(file), 1);
  EXPECT_EQ(schema_text(file), before);
}

TEST(Migrate, TwoAtOnceMigrateOnce) {
  TempFolder folder;
  const auto file = folder / "a.db";
  make_version_zero(file);
  const std::string_view all[] = {kOne, kTwo, kThree};  // applied twice, kOne would fail
  std::thread other([&] { EXPECT_NO_THROW(migrate(file, all)); });
  EXPECT_NO_THROW(migrate(file, all));
  other.join();
  EXPECT_EQ(version_of(file), 3);
}

TEST(Migrate, NewerAndForeignFilesAreRefused) {
  TempFolder folder;
  const auto file = folder / "a.db";
  make_version_zero(file);
  SQLite::Database(file.string(), SQLite::OPEN_READWRITE).exec("PRAGMA user_version=9");
  EXPECT_THROW(migrate(file), Error);
  SQLite::Database((folder / "b.db").string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
      .exec("CREATE TABLE x(y)");
  EXPECT_THROW(migrate(folder / "b.db"), Error);
}

TEST(Migrate, VersionZeroEndsLikeAFreshFile) {
  TempFolder folder;
  make_version_zero(folder / "old.db");
  migrate(folder / "old.db");
  { Store fresh(folder / "fresh.db"); }
  EXPECT_EQ(schema_text(folder / "old.db"), schema_text(folder / "fresh.db"));
}

/// A released version leaves its database: ASSAY_UPDATE_CASES=1 writes the current one, once.
void write_fixture(const fs::path& file) {
  TempFolder folder;
  {
    SampleStore sample(folder / "new.db");
    const Claim claim = sample.claim_and_import();
    sample.store.finish_attempt(claim.attempt_id, {.state = "killed"});
    sample.store.requeue_run(claim.run.run_id);
  }
  SQLite::Database((folder / "new.db").string(), SQLite::OPEN_READWRITE)
      .exec("PRAGMA journal_mode=DELETE; PRAGMA page_size=512; VACUUM; PRAGMA journal_mode=WAL");
  fs::create_directories(file.parent_path());
  fs::copy_file(folder / "new.db", file);
}

TEST(Migrate, TheCurrentVersionHasAFixture) {
  const fs::path file =
      fs::path(ASSAY_TEST_DATA) / "store" / ("v" + std::to_string(current_version()) + ".db");
  if (std::getenv("ASSAY_UPDATE_CASES") != nullptr && !fs::exists(file)) write_fixture(file);
  EXPECT_TRUE(fs::exists(file)) << file;
}

/// Every released version left a database: each must migrate, keep its rows and end like new.
class Fixture : public testing::TestWithParam<std::string> {};

TEST_P(Fixture, MigratesAndEndsLikeAFreshFile) {
  TempFolder folder;
  const auto file = folder / "old.db";
  fs::copy_file(fs::path(ASSAY_TEST_DATA) / "store" / GetParam(), file);
  migrate(file);
  { Store fresh(folder / "fresh.db"); }
  EXPECT_EQ(schema_text(file), schema_text(folder / "fresh.db"));
  Reader reader(file);
  EXPECT_EQ(reader.studies().at(0).name, "layouts");
  const Table cells = reader.query("SELECT slug, state, runs FROM v_cell ORDER BY ordinal");
  ASSERT_EQ(cells.rows.size(), 3u);
  EXPECT_EQ(text(cells.at(0, "state")), "queued");
  EXPECT_EQ(integer(reader.query("SELECT count(*) FROM v_step").rows[0][0]), 41);
  EXPECT_TRUE(find_damage(file).empty());
}

INSTANTIATE_TEST_SUITE_P(Released, Fixture, testing::Values("v1.db"));

}  // namespace
}  // namespace assay::store
