// Queries, aggregates and the lookup of studies.
#include "core/store/reader.h"

#include <gtest/gtest.h>

#include "assay/error.h"
#include "core/store/quantile.h"
#include "tests/core/store/sample_study.h"

namespace assay::store {
namespace {

TEST(Quantile, TypeSevenVector) {  // V7 of the design
  const std::vector<double> x = {.112, .101, .105, .250, .103, .102, .108, .104, .106, .110};
  EXPECT_NEAR(*quantile(x, 0.1), .1019, 1e-15);
  EXPECT_NEAR(*quantile(x, 0.5), .1055, 1e-15);
  EXPECT_NEAR(*quantile(x, 0.9), .1258, 1e-15);
  EXPECT_EQ(quantile({3.5}, 0.9), 3.5);
  EXPECT_EQ(quantile({2, 1}, 1.0), 2);
  EXPECT_EQ(quantile({}, 0.5), std::nullopt);
}

class ReaderTest : public testing::Test {
 protected:
  ReaderTest() : sample_(folder_ / "a.db"), reader_(folder_ / "a.db") {}
  std::string error_of(const std::string& sql) {
    try {
      reader_.query(sql);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  TempFolder folder_;
  SampleStore sample_;
  Reader reader_;
};

TEST_F(ReaderTest, AggregatesIgnoreNullsAndFollowGroups) {
  const Table t = reader_.query(
      "SELECT g, median(x) m, p10(x) p FROM (SELECT 1 g, 1 x UNION ALL SELECT 1, 3 UNION ALL "
      "SELECT 1, NULL"
      " UNION ALL SELECT 2, NULL) GROUP BY g ORDER BY g");
  EXPECT_EQ(real(t.at(0, "m")), 2);
  EXPECT_EQ(real(t.at(0, "p")), 1.2);
  EXPECT_FALSE(real(t.at(1, "m")));
  EXPECT_FALSE(real(reader_.query("SELECT median(1) FROM runs WHERE 0").rows[0][0]));
}

TEST_F(ReaderTest, ValuesKeepTheirTypes) {
  const Table t = reader_.query("SELECT 1 a, 2.5 b, 'x' c, NULL d, ?1 e", {int64_t{7}});
  EXPECT_EQ(integer(t.at(0, "a")), 1);
  EXPECT_EQ(real(t.at(0, "b")), 2.5);
  EXPECT_FALSE(integer(t.at(0, "b")));
  EXPECT_EQ(text(t.at(0, "c")), "x");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(t.at(0, "d")));
  EXPECT_EQ(integer(t.at(0, "e")), 7);
  EXPECT_THROW(t.at(0, "f"), std::logic_error);
}

TEST_F(ReaderTest, OneStatementAtATime) {
  EXPECT_NE(error_of("SELECT 1; SELECT 2").find("one SQL statement at a time"), std::string::npos);
  EXPECT_EQ(error_of("SELECT 1 ; \n"), "no error");
  EXPECT_NE(error_of("  ").find("no SQL statement"), std::string::npos);
  EXPECT_NE(error_of("SELEKT 1").find("syntax error"), std::string::npos);
}

TEST_F(ReaderTest, ALongQueryIsStopped) {
  reader_.set_timeout(0.05);
  EXPECT_NE(
      error_of(
          "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c")
          .find("past its time limit"),
      std::string::npos);
  EXPECT_EQ(reader_.query("SELECT 1").rows.size(), 1u);
}

TEST_F(ReaderTest, AnUnknownStudyNamesTheNearest) {
  EXPECT_EQ(reader_.study("layouts").study_id, sample_.study_id);
  try {
    reader_.study("layuots");
    FAIL() << "an unknown study was found";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("there is no study 'layuots'"), std::string::npos);
    EXPECT_EQ(error.hint(), "did you mean 'layouts'?");
  }
}

TEST_F(ReaderTest, AnEmptyDatabaseSaysWhatToDo) {
  Store empty(folder_ / "empty.db");
  try {
    Reader(folder_ / "empty.db").study("x");
    FAIL() << "a study was found in an empty database";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("holds no study yet"), std::string::npos);
    EXPECT_EQ(error.hint(), "start one: assay run STUDY.yaml");
  }
}

TEST_F(ReaderTest, TheNewestStudyOfANameCounts) {
  Study changed = sample_study();
  changed.yaml_sha256 = id64('6');
  const int64_t newer = sample_.store.add_study(changed);
  EXPECT_EQ(reader_.study("layouts").study_id, newer);
  EXPECT_EQ(reader_.studies().size(), 1u);
  EXPECT_EQ(reader_.newest_study().study_id, newer);
}

TEST_F(ReaderTest, SeesWhatIsCommittedMeanwhile) {
  EXPECT_EQ(reader_.query("SELECT * FROM runs WHERE state='running'").rows.size(), 0u);
  sample_.claim();
  EXPECT_EQ(reader_.query("SELECT * FROM runs WHERE state='running'").rows.size(), 1u);
}

}  // namespace
}  // namespace assay::store
