// Store: spool rows become table rows, and the file offset behind them moves in the same
// transaction, so that no row is stored twice and none is lost.
#include <sqlite3.h>

#include "assay/error.h"
#include "core/store/connection.h"
#include "core/store/row_binder.h"
#include "core/store/store.h"

namespace assay::store {
namespace {

using nlohmann::json;

SpoolPosition position(SQLite::Database& db, int64_t attempt_id, int64_t rank) {
  auto row = statement(db,
                       "SELECT path, bytes_imported, rows_imported, rows_declared FROM spool_files"
                       " WHERE attempt_id=?1 AND rank=?2",
                       attempt_id, rank);
  if (!row.executeStep()) return {};
  return {.path = row.getColumn(0).getString(),
          .bytes_imported = row.getColumn(1).getInt64(),
          .rows_imported = row.getColumn(2).getInt64(),
          .rows_declared = column_int(row, 3)};
}

void save(SQLite::Database& db, int64_t attempt_id, int64_t rank, const SpoolPosition& p) {
  execute(db,
          "INSERT INTO spool_files VALUES(?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO UPDATE SET"
          " path=excluded.path, bytes_imported=excluded.bytes_imported,"
          " rows_imported=excluded.rows_imported, rows_declared=excluded.rows_declared",
          attempt_id, rank, p.path, p.bytes_imported, p.rows_imported, p.rows_declared);
}

/// A spool without a supervisor carries its config, and ids of its own.
void require_own(const json& open, int64_t attempt_id, int64_t rank) {
  if (open.value("schema", int64_t{0}) != 1) {
    throw Error("spool schema " + open.value("schema", json()).dump() +
                " is not known; allowed: 1");
  }
  const bool own = open.value("attempt_id", int64_t{-1}) == attempt_id || open.contains("config");
  if (own && open.value("rank", int64_t{-1}) == rank) return;
  throw Error("the spool belongs to attempt " + open.value("attempt_id", json()).dump() +
              ", rank " + open.value("rank", json()).dump());
}

constexpr size_t kHashDigits = 64;
constexpr size_t kExactDigits = 12;  // 48 bits: exact in a double

/// The first 48 bits of a SHA-256, so that checksums can be compared in SQL.
std::optional<double> hash_number(const std::string& text) {
  if (text.size() != kHashDigits) return std::nullopt;
  if (text.find_first_not_of("0123456789abcdef") != std::string::npos) return std::nullopt;
  return static_cast<double>(std::stoull(text.substr(0, kExactDigits), nullptr, 16));
}

void insert_fact(RowBinder& binder, const std::string& name, double value, const char* formula) {
  binder.insert("metrics",
                {{"name", name}, {"value", value}, {"unit", "1"}, {"formula_id", formula}});
}

/// Numbers, truth values and hashes below `value` as metrics "fact.a.b"; other texts stay in the
/// spool.
void insert_facts(RowBinder& binder, const std::string& name, const json& value) {
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) {
      if (key != "t") insert_facts(binder, name + "." + key, item);
    }
  } else if (value.is_boolean()) {
    insert_fact(binder, name, value.get<bool>(), "fact.v1");
  } else if (value.is_number()) {
    insert_fact(binder, name, value.get<double>(), "fact.v1");
  } else if (value.is_string()) {
    const auto number = hash_number(value.get_ref<const std::string&>());
    if (number) insert_fact(binder, name, *number, "fact.hash48.v1");
  }
}

class Import {
 public:
  Import(SQLite::Database& db, int64_t attempt_id, int64_t rank)
      : binder_(db, attempt_id, rank), attempt_id_(attempt_id), rank_(rank) {}

  void row(const json& row, SpoolPosition& position) {
    const std::string table = row.value("t", "");
    if (position.rows_declared) throw Error("a row follows the close row");
    if (table == "close") {
      position.rows_declared = row.value("rows", int64_t{-1});
      return;  // not a row that it counts
    }
    if (table == "open")
      require_own(row, attempt_id_, rank_);
    else if (table == "facts")
      insert_facts(binder_, "fact", row);
    else if (RowBinder::knows(table))
      binder_.insert(table, row);
    else
      throw Error("unknown row kind '" + table + "'");
    ++position.rows_imported;
  }

 private:
  RowBinder binder_;
  const int64_t attempt_id_;
  const int64_t rank_;
};

[[noreturn]] void fail(const std::filesystem::path& path, int64_t number, const json& row,
                       const std::string& what) {
  throw Error("spool '" + path.string() + "', row " + std::to_string(number) + " (" +
                  row.value("t", "?") + "): " + what,
              "rows before this batch are kept; the run is repeated by: assay resume");
}

}  // namespace

SpoolPosition Store::spool(int64_t attempt_id, int64_t rank) const {
  return connection_->read([&](SQLite::Database& db) { return position(db, attempt_id, rank); });
}

SpoolPosition Store::import_rows(int64_t attempt_id, int64_t rank,
                                 const std::filesystem::path& path, std::span<const json> rows,
                                 int64_t offset) {
  return connection_->write([&](SQLite::Database& db) {
    SpoolPosition at = position(db, attempt_id, rank);
    ASSAY_CHECK(offset >= at.bytes_imported, "a spool import moved backwards");
    Import import(db, attempt_id, rank);
    int64_t number = at.rows_imported;
    for (const json& row : rows) {
      ++number;
      try {
        import.row(row, at);
      } catch (const SQLite::Exception& error) {
        if (error.getErrorCode() != SQLITE_CONSTRAINT) throw;
        fail(path, number, row, error.what());
      } catch (const json::exception& error) {
        fail(path, number, row, error.what());
      } catch (const Error& error) {
        fail(path, number, row, error.what());
      }
    }
    at.path = path.string();
    at.bytes_imported = offset;
    save(db, attempt_id, rank, at);
    return at;
  });
}

}  // namespace assay::store
