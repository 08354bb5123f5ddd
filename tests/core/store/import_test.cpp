// Spool import: exactly once, nothing in silence, nothing half.
#include "core/store/spool_import.h"

#include <gtest/gtest.h>

#include <bit>
#include <fstream>

#include "assay/error.h"
#include "core/base/spool.h"
#include "core/store/import.h"
#include "tests/core/store/sample_study.h"

namespace assay::store {
namespace {

namespace fs = std::filesystem;

class SpoolImportTest : public testing::Test {
 protected:
  SpoolImportTest() : sample_(folder_ / "a.db"), claim_(sample_.claim().value()) {}

  void write(const std::vector<nlohmann::json>& rows) {
    std::ofstream out(spool_, std::ios::app | std::ios::binary);
    for (const auto& row : rows) out << spool_line(row);
  }
  void write_text(const std::string& text) { std::ofstream(spool_, std::ios::app) << text; }
  SpoolImport import(size_t batch = 7) {
    return import_spool(sample_.store, claim_.attempt_id, 0, spool_, batch);
  }
  int64_t count(const std::string& table) {
    return *integer(sample_.store.query("SELECT count(*) FROM " + table).rows[0][0]);
  }
  std::string error_of(const nlohmann::json& row) {
    try {
      sample_.store.import_rows(claim_.attempt_id, 0, spool_, {&row, 1}, 10);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  TempFolder folder_;
  SampleStore sample_;
  Claim claim_;
  fs::path spool_ = folder_ / "1.r0.jl";
};

TEST_F(SpoolImportTest, BringsEveryRowToItsTable) {
  const auto rows = spool_rows(claim_.attempt_id);
  write(rows);
  const SpoolImport result = import();
  EXPECT_EQ(result.rows, static_cast<int64_t>(rows.size()));
  EXPECT_TRUE(result.position.complete());
  EXPECT_FALSE(result.torn);
  EXPECT_EQ(result.position.bytes_imported, static_cast<int64_t>(fs::file_size(spool_)));
  EXPECT_EQ(count("steps"), 41);
  EXPECT_EQ(count("samples"), 2);
  EXPECT_EQ(count("memory"), 1);
  EXPECT_EQ(count("memory_categories"), 1);
  EXPECT_EQ(count("collectives"), 1);
  EXPECT_EQ(count("metrics WHERE name IN('fact.threads','fact.data.bytes','fact.data.tokens')"), 3);
  const Table checksum =
      sample_.store.query("SELECT value FROM metrics WHERE name='fact.parameter_checksum'");
  EXPECT_EQ(real(checksum.at(0, "value")), double(0x111111111111));  // 48 bits of the hash
}

TEST_F(SpoolImportTest, ImportedTwiceIsStoredOnce) {
  write(spool_rows(claim_.attempt_id));
  import();
  const SpoolImport again = import();
  EXPECT_EQ(again.rows, 0);
  EXPECT_EQ(count("steps"), 41);
}

TEST_F(SpoolImportTest, ATornLastLineWaitsForTheRest) {
  write({open_row(claim_.attempt_id), step_row(1)});
  const std::string line = spool_line(step_row(2));
  write_text(line.substr(0, 20));
  const SpoolImport torn = import();
  EXPECT_TRUE(torn.torn);
  EXPECT_EQ(count("steps"), 1);
  write_text(line.substr(20));
  const SpoolImport whole = import();
  EXPECT_FALSE(whole.torn);
  EXPECT_EQ(whole.rows, 1);
  EXPECT_EQ(count("steps"), 2);
}

TEST_F(SpoolImportTest, ADamagedLineStopsTheImportThereAndIsReported) {
  write({open_row(claim_.attempt_id), step_row(1), step_row(2)});
  std::string line = spool_line(step_row(3));
  line[30] ^= 1;
  write_text(line);
  write({step_row(4)});
  for (int attempt = 0; attempt < 2; ++attempt) {  // and again: the place does not move
    const SpoolImport result = import();
    ASSERT_TRUE(result.corrupt.has_value());
    EXPECT_NE(render(*result.corrupt).find("1.r0.jl:4: error[H05]: damaged spool row"),
              std::string::npos)
        << render(*result.corrupt);
    EXPECT_EQ(count("steps"), 2);
    EXPECT_FALSE(result.position.complete());
  }
}

TEST_F(SpoolImportTest, AShrunkFileIsReported) {
  write(spool_rows(claim_.attempt_id));
  import();
  fs::resize_file(spool_, 100);
  const SpoolImport result = import();
  ASSERT_TRUE(result.corrupt.has_value());
  EXPECT_EQ(result.corrupt->id, "H06");
  EXPECT_EQ(count("steps"), 41);
}

TEST_F(SpoolImportTest, AMissingFileHasNoRows) {
  const SpoolImport result = import();
  EXPECT_EQ(result.rows, 0);
  EXPECT_FALSE(result.corrupt);
}

TEST_F(SpoolImportTest, NonFiniteNumbersAreNamedNotLost) {
  nlohmann::json step = step_row(1);
  step["loss"] = std::nan("");
  step["grad_norm"] = "inf";
  write({open_row(claim_.attempt_id),
         step,
         {{"t", "samples"}, {"name", "amax"}, {"step", 1}, {"value", "-inf"}},
         {{"t", "metrics"}, {"name", "m"}, {"value", "nan"}, {"unit", "1"}, {"formula_id", "f"}}});
  import();
  const Table row = sample_.store.query("SELECT loss, flags, grad_norm, grad_norm_bits FROM steps");
  EXPECT_FALSE(real(row.at(0, "loss")));
  EXPECT_EQ(integer(row.at(0, "flags")), 16);
  EXPECT_FALSE(real(row.at(0, "grad_norm")));
  EXPECT_EQ(integer(row.at(0, "grad_norm_bits")),
            std::bit_cast<int64_t>(std::numeric_limits<double>::infinity()));
  EXPECT_EQ(text(sample_.store.query("SELECT nonfinite FROM samples").rows[0][0]), "-inf");
  EXPECT_EQ(text(sample_.store.query("SELECT nonfinite FROM metrics WHERE name='m'").rows[0][0]),
            "nan");
}

TEST_F(SpoolImportTest, BitsOfTheLossAreExact) {
  nlohmann::json step = step_row(1);
  const double loss = 0.1 + 0.2;
  step["loss"] = loss;
  write({open_row(claim_.attempt_id), step});
  import();
  const Table row = sample_.store.query("SELECT loss, loss_bits FROM steps");
  EXPECT_EQ(real(row.at(0, "loss")), loss);
  EXPECT_EQ(integer(row.at(0, "loss_bits")), std::bit_cast<int64_t>(loss));
}

/// Property: rows as text and rows as JSON end as the same table rows, whatever their values.
TEST_F(SpoolImportTest, TextAndJsonAreTheSameRows) {
  std::vector<nlohmann::json> rows = spool_rows(claim_.attempt_id);
  rows.pop_back();
  nlohmann::json odd = step_row(41);
  odd.update(
      {{"loss", "nan"}, {"flags", 1}, {"grad_norm", "-inf"}, {"lr", nullptr}, {"tokens", 7}});
  rows.push_back(odd);
  odd = step_row(42);
  odd.update({{"loss", 5}, {"wall_s", 1e-300}, {"loss_bits", nullptr}});
  rows.push_back(odd);
  rows.push_back({{"t", "metrics"},
                  {"name", "whole"},
                  {"rank", -1},
                  {"value", true},
                  {"unit", "1"},
                  {"formula_id", "x \u00e9 \" \\"}});
  rows.back()["value"] = 0.1;
  const Claim other = sample_.claim().value();
  std::vector<std::string> texts;
  for (const auto& row : rows) texts.push_back(row.dump());
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  import_text(sample_.store, claim_.attempt_id, 0, spool_, views, 10);
  rows[0]["attempt_id"] = other.attempt_id;
  sample_.store.import_rows(other.attempt_id, 0, spool_, rows, 10);
  for (const char* table :
       {"steps", "samples", "metrics", "memory", "memory_categories", "collectives"}) {
    const auto of = [&](int64_t attempt) {
      Table all = sample_.store.query(
          "SELECT * FROM " + std::string(table) + " WHERE attempt_id=?1 ORDER BY 2, 3, 4, 5",
          {attempt});
      for (auto& row : all.rows) row[0] = int64_t{0};
      return all.rows;
    };
    EXPECT_FALSE(of(claim_.attempt_id).empty()) << table;
    EXPECT_EQ(of(claim_.attempt_id), of(other.attempt_id)) << table;
  }
}

TEST_F(SpoolImportTest, TextThatIsNoRowIsRefusedWithItsPlace) {
  const auto error_of_text = [&](std::string_view text) -> std::string {
    try {
      import_text(sample_.store, claim_.attempt_id, 0, spool_, {&text, 1}, 10);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(error_of_text("{\"t\":\"steps\",").find("row 1 (?): "), std::string::npos);
  EXPECT_NE(error_of_text(R"({"t":"steps","step":[1]})").find("a list or an object"),
            std::string::npos);
  EXPECT_NE(error_of_text(R"({"step":1})").find("unknown row kind ''"), std::string::npos);
  EXPECT_EQ(count("steps"), 0);
}

TEST_F(SpoolImportTest, ARowThatDoesNotFitIsRefusedWithItsPlace) {
  nlohmann::json row = step_row(1);
  row["wall_s"] = "fast";
  EXPECT_NE(error_of(row).find("row 1 (steps): 'wall_s' must be a number; got \"fast\""),
            std::string::npos);
  row = step_row(1);
  row.erase("tokens");
  EXPECT_NE(error_of(row).find("'tokens' is missing"), std::string::npos);
  row = step_row(1);
  row["los"] = 1;
  EXPECT_NE(error_of(row).find("unknown column 'los'"), std::string::npos);
  row = step_row(1);
  row["kind"] = "lunch";
  EXPECT_NE(error_of(row).find("row 1 (steps)"), std::string::npos);
  EXPECT_NE(error_of({{"t", "weather"}}).find("unknown row kind 'weather'"), std::string::npos);
  EXPECT_NE(error_of(open_row(claim_.attempt_id + 1)).find("belongs to attempt"),
            std::string::npos);
  EXPECT_NE(error_of(open_row(claim_.attempt_id, 3)).find("rank 3"), std::string::npos);
  EXPECT_EQ(count("steps"), 0);
  EXPECT_EQ(count("spool_files"), 0);
}

/// Many rows go in with one statement; how rows are grouped must not show, whatever their keys.
TEST_F(SpoolImportTest, RowsInGroupsAreTheSameAsRowsAlone) {
  std::vector<nlohmann::json> rows = {open_row(claim_.attempt_id)};
  for (int64_t step = 1; step <= 75; ++step) {  // two groups of 32 and a rest
    rows.push_back(step_row(step));
    if (step % 7 == 0) rows.back().erase("grad_norm");
    if (step % 11 == 0) rows.back()["flags"] = 2;
    if (step % 13 == 0) rows.back()["loss"] = "nan";
    if (step % 17 == 0) rows.back()["rank"] = 3;
    rows.push_back({{"t", "samples"}, {"name", "forward_s"}, {"step", step}, {"value", 0.5}});
  }
  sample_.store.import_rows(claim_.attempt_id, 0, spool_, rows, 10);
  const Claim other = sample_.claim().value();
  rows[0]["attempt_id"] = other.attempt_id;
  for (size_t i = 0; i < rows.size(); ++i) {
    sample_.store.import_rows(other.attempt_id, 0, spool_, {&rows[i], 1}, int64_t(i) + 1);
  }
  EXPECT_EQ(count("steps"), 150);
  EXPECT_EQ(count("samples"), 150);
  EXPECT_EQ(count("steps WHERE loss IS NULL AND flags=16"), 10);
  EXPECT_EQ(count("steps WHERE rank=3"), 8);
  const auto of = [&](int64_t attempt) {
    Table all = sample_.store.query("SELECT * FROM steps WHERE attempt_id=?1", {attempt});
    for (auto& row : all.rows) row[0] = int64_t{0};
    return all.rows;
  };
  EXPECT_EQ(of(claim_.attempt_id), of(other.attempt_id));
}

TEST_F(SpoolImportTest, AnErrorInsideAGroupNamesItsRow) {
  std::vector<nlohmann::json> rows = {open_row(claim_.attempt_id)};
  for (int64_t step = 1; step <= 40; ++step) rows.push_back(step_row(step));
  const auto error_with = [&](int64_t place, const nlohmann::json& row) -> std::string {
    auto changed = rows;
    changed[static_cast<size_t>(place - 1)] = row;
    try {
      sample_.store.import_rows(claim_.attempt_id, 0, spool_, changed, 500);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(error_with(20, step_row(3)).find("row 20 (steps): UNIQUE"), std::string::npos);
  nlohmann::json bad = step_row(11);
  bad["kind"] = "lunch";
  EXPECT_NE(error_with(12, bad).find("row 12 (steps): CHECK"), std::string::npos);
  bad["kind"] = 5;
  EXPECT_NE(error_with(41, bad).find("row 41 (steps): 'kind' must be a text; got 5"),
            std::string::npos);
  EXPECT_NE(error_with(30, {{"t", "weather"}}).find("row 30 (weather)"), std::string::npos);
  EXPECT_EQ(count("steps"), 0);
  EXPECT_EQ(error_with(2, step_row(1)), "no error");
  EXPECT_EQ(count("steps"), 40);
}

TEST_F(SpoolImportTest, ABatchIsStoredWholeOrNotAtAll) {
  const std::vector<nlohmann::json> rows = {open_row(claim_.attempt_id), step_row(1), step_row(1)};
  EXPECT_THROW(sample_.store.import_rows(claim_.attempt_id, 0, spool_, rows, 500), Error);
  EXPECT_EQ(count("steps"), 0);
  EXPECT_EQ(sample_.store.spool(claim_.attempt_id, 0).bytes_imported, 0);
}

TEST_F(SpoolImportTest, RowsMissingBeforeTheCloseAreSeen) {
  write(
      {open_row(claim_.attempt_id), step_row(1), {{"t", "close"}, {"rows", 5}, {"outcome", "ok"}}});
  const SpoolImport result = import();
  EXPECT_EQ(result.position.rows_declared, 5);
  EXPECT_EQ(result.position.rows_imported, 2);
  EXPECT_FALSE(result.position.complete());
}

TEST_F(SpoolImportTest, TotalsOfAPhaseAreReplacedByLaterOnes) {
  nlohmann::json memory = {{"t", "memory"}, {"phase", "step"}, {"peak_allocated_bytes", 10}};
  write({open_row(claim_.attempt_id), memory});
  memory["peak_allocated_bytes"] = 20;
  write({memory});
  import();
  EXPECT_EQ(integer(sample_.store.query("SELECT peak_allocated_bytes FROM memory").rows[0][0]), 20);
}

TEST_F(SpoolImportTest, AFullDiskStoresNothingOfTheBatchAndTheSpoolServesLater) {
  std::vector<nlohmann::json> rows = {open_row(claim_.attempt_id)};
  for (int64_t step = 1; step <= 5000; ++step) rows.push_back(step_row(step));
  write(rows);
  const auto pages = integer(sample_.store.query("PRAGMA page_count").rows[0][0]).value();
  sample_.store.query("PRAGMA max_page_count=" + std::to_string(pages + 4));
  EXPECT_THROW(import(10000), InfrastructureError);
  EXPECT_EQ(count("steps"), 0);
  EXPECT_EQ(sample_.store.spool(claim_.attempt_id, 0).bytes_imported, 0);
  sample_.store.query("PRAGMA max_page_count=1000000");
  EXPECT_EQ(import(10000).rows, 5001);
  EXPECT_EQ(count("steps"), 5000);
}

TEST_F(SpoolImportTest, ASpoolWithoutSupervisorIsTakenByItsConfig) {
  nlohmann::json open = open_row(0);
  open["config"] = sample_config("bf16");
  write({open, step_row(1)});
  EXPECT_EQ(import().rows, 2);
}

}  // namespace
}  // namespace assay::store
