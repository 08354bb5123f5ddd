// Opening a database: what is made, and what is refused with which words.
#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include <fstream>

#include "assay/error.h"
#include "core/store/check.h"
#include "core/store/connection.h"
#include "core/store/reader.h"
#include "core/store/schema.h"
#include "core/store/volume.h"
#include "tests/core/store/sample_study.h"

namespace assay::store {
namespace {

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
  return "no error";
}

void with_raw(const std::filesystem::path& file, const std::string& sql) {
  SQLite::Database(file.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec(sql);
}

/// File permissions of another user for one scope, also for a test run by root.
class AsNobody {
 public:
  AsNobody() { setfsuid(65534); }
  ~AsNobody() { setfsuid(geteuid()); }
};

TEST(Open, MakesFolderFileAndSchema) {
  TempFolder folder;
  const auto file = folder / "results/new.db";
  Store store(file);
  const Table meta = store.query("SELECT key FROM meta ORDER BY key");
  EXPECT_EQ(meta.rows.size(), 3u);
  EXPECT_EQ(text(store.query("PRAGMA journal_mode").rows[0][0]), "wal");
  EXPECT_EQ(integer(store.query("PRAGMA foreign_keys").rows[0][0]), 1);
  EXPECT_EQ(integer(store.query("PRAGMA synchronous").rows[0][0]), 2);
  EXPECT_EQ(integer(store.query("PRAGMA application_id").rows[0][0]), kApplicationId);
  EXPECT_EQ(integer(store.query("PRAGMA user_version").rows[0][0]), 1);
  EXPECT_TRUE(find_damage(file).empty());
}

TEST(Open, ReaderCannotWrite) {
  TempFolder folder;
  Store store(folder / "a.db");
  Reader reader(folder / "a.db");
  EXPECT_THROW(reader.query("DELETE FROM meta"), Error);
  EXPECT_THROW(reader.query("CREATE TABLE x(y)"), Error);
}

TEST(Open, NewerSchemaIsRefusedForWritingAndNamed) {
  TempFolder folder;
  const auto file = folder / "a.db";
  { Store store(file); }
  with_raw(file, "PRAGMA user_version=7");
  const std::string message = message_of([&] { Store store(file); });
  EXPECT_NE(message.find("has schema version 7; assay 0.1.0 knows versions up to 1"),
            std::string::npos)
      << message;
  EXPECT_NO_THROW(Reader{file});  // meta.min_reader is 1
  with_raw(file, "UPDATE meta SET value='2' WHERE key='min_reader'");
  EXPECT_THROW(Reader{file}, Error);
}

TEST(Open, OlderSchemaNamesTheMigration) {
  TempFolder folder;
  const auto file = folder / "a.db";
  with_raw(file, "PRAGMA application_id=" + std::to_string(kApplicationId) + "; CREATE TABLE t(x)");
  const std::string message = message_of([&] { Reader reader(file); });
  EXPECT_NE(message.find("has schema version 0; assay 0.1.0 needs 1"), std::string::npos)
      << message;
  EXPECT_NE(message.find("assay db migrate --db " + file.string()), std::string::npos);
  EXPECT_THROW(Store{file}, Error);
}

TEST(Open, ForeignAndDamagedFilesAreRefused) {
  TempFolder folder;
  with_raw(folder / "other.db", "CREATE TABLE t(x)");
  EXPECT_NE(
      message_of([&] { Store store(folder / "other.db"); }).find("no results database of assay"),
      std::string::npos);
  std::ofstream(folder / "text.db")
      << "this is a text file, not a database, and long enough to see";
  EXPECT_NE(message_of([&] { Store store(folder / "text.db"); }).find("is not an SQLite database"),
            std::string::npos);
}

TEST(Open, MissingFileNamesTheCommand) {
  TempFolder folder;
  const std::string message = message_of([&] { Reader reader(folder / "none.db"); });
  EXPECT_NE(message.find("there is no results database"), std::string::npos);
  EXPECT_NE(message.find("assay run STUDY.yaml"), std::string::npos);
}

TEST(Open, ReadOnlyFileIsRefusedForWriting) {
  TempFolder folder;
  const auto file = folder / "a.db";
  { Store store(file); }
  std::filesystem::permissions(file, std::filesystem::perms(0444));
  const AsNobody nobody;
  const std::string message = message_of([&] { Store store(file); });
  EXPECT_NE(message.find("cannot be written: it or its folder is read-only"), std::string::npos)
      << message;
}

TEST(Open, ReadOnlyFolderCanBeRead) {
  TempFolder folder;
  const auto file = folder / "a%b.db";  // '%' would be an escape in a URI
  { SampleStore sample(file); }
  std::filesystem::permissions(file, std::filesystem::perms(0444));
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0555));
  {
    const AsNobody nobody;
    EXPECT_EQ(Reader(file).studies().size(), 1u);
  }
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
}

TEST(Open, NetworkFileSystemsAreKnown) {
  EXPECT_EQ(network_file_system(0x6969), "NFS");
  EXPECT_EQ(network_file_system(0xFF534D42), "SMB");
  EXPECT_EQ(network_file_system(0x0BD00BD0), "Lustre");
  EXPECT_EQ(network_file_system(0x65735546), "FUSE");
  EXPECT_EQ(network_file_system(0xEF53), std::nullopt);      // ext4
  EXPECT_EQ(network_file_system(0x01021994), std::nullopt);  // tmpfs
}

TEST(Open, DamageIsNamedWithTheCheck) {
  EXPECT_NE(message_of([] { rethrow(SQLite::Exception("x", 11), "a.db"); }).find("assay db check"),
            std::string::npos);
  EXPECT_THROW(rethrow(SQLite::Exception("x", 13), "a.db"), InfrastructureError);
}

}  // namespace
}  // namespace assay::store
