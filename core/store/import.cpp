// Store: spool rows become table rows, and the file offset behind them moves in the same
// transaction, so that no row is stored twice and none is lost.
#include "core/store/import.h"

#include <SQLiteCpp/Savepoint.h>
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

constexpr size_t kRowsPerInsert = 32;  // more gain nothing

class Import {
 public:
  Import(SQLite::Database& db, int64_t attempt_id, int64_t rank, size_t rows_per_insert)
      : binder_(db, attempt_id, rank, rows_per_insert), attempt_id_(attempt_id), rank_(rank) {}

  void row(std::string_view text, SpoolPosition& position) {
    if (flat_.parse(text) && RowBinder::knows(flat_.table())) {
      insert(position);
    } else {
      other(json::parse(text), position);
    }
  }
  void row(const json& row, SpoolPosition& position) {
    if (flat_.assign(row) && RowBinder::knows(flat_.table())) {
      insert(position);
    } else {
      other(row, position);
    }
  }
  void flush() { binder_.flush(); }

 private:
  void insert(SpoolPosition& position) {
    require_open(position);
    binder_.insert(flat_);
    ++position.rows_imported;
  }

  /// Rows that are no table row as they stand.
  void other(const json& row, SpoolPosition& position) {
    const std::string kind = row.value("t", "");
    require_open(position);
    if (kind == "close") {
      position.rows_declared = row.value("rows", int64_t{-1});
      return;  // not a row that it counts
    }
    if (kind == "open")
      require_own(row, attempt_id_, rank_);
    else if (kind == "facts")
      insert_facts("fact", row);
    else if (RowBinder::knows(kind))
      throw Error("a value is a list or an object: " + row.dump());
    else
      throw Error("unknown row kind '" + kind + "'");
    ++position.rows_imported;
  }

  static void require_open(const SpoolPosition& position) {
    if (position.rows_declared) throw Error("a row follows the close row");
  }

  void insert_fact(const std::string& name, double value, const char* formula) {
    flat_.assign({{"t", "metrics"},
                  {"name", name},
                  {"value", value},
                  {"unit", "1"},
                  {"formula_id", formula}});
    binder_.insert(flat_);
  }

  /// Numbers, truth values and hashes below `value` as metrics "fact.a.b"; other texts stay in the
  /// spool.
  void insert_facts(const std::string& name, const json& value) {
    if (value.is_object()) {
      for (const auto& [key, item] : value.items()) {
        if (key != "t") insert_facts(name + "." + key, item);
      }
    } else if (value.is_boolean()) {
      insert_fact(name, value.get<bool>(), "fact.v1");
    } else if (value.is_number()) {
      insert_fact(name, value.get<double>(), "fact.v1");
    } else if (value.is_string()) {
      const auto number = hash_number(value.get_ref<const std::string&>());
      if (number) insert_fact(name, *number, "fact.hash48.v1");
    }
  }

  RowBinder binder_;
  FlatRow flat_;
  const int64_t attempt_id_;
  const int64_t rank_;
};

std::string kind_of(const json& row) { return row.value("t", "?"); }
std::string kind_of(std::string_view text) {
  const json row = json::parse(text, nullptr, /*allow_exceptions=*/false);
  return row.is_object() ? kind_of(row) : "?";
}

template <class Row>
[[noreturn]] void fail(const std::filesystem::path& path, int64_t number, const Row& row,
                       const std::string& what) {
  throw Error("spool '" + path.string() + "', row " + std::to_string(number) + " (" + kind_of(row) +
                  "): " + what,
              "rows before this batch are kept; the run is repeated by: assay resume");
}

/// Why a row is not fit to be stored; nothing if `f` ran through.
template <class F>
std::optional<std::string> misfit_of(F&& f) {
  try {
    f();
    return std::nullopt;
  } catch (const SQLite::Exception& error) {
    if (error.getErrorCode() != SQLITE_CONSTRAINT) throw;
    return error.what();
  } catch (const json::exception& error) {
    return error.what();
  } catch (const Error& error) {
    return error.what();
  }
}

/// Many rows with one statement; an error leaves nothing stored and `at` as it was.
template <class Row>
bool import_fast(SQLite::Database& db, Import&& import, std::span<const Row> rows,
                 SpoolPosition& at) {
  const SpoolPosition before = at;
  SQLite::Savepoint savepoint(db, "rows");
  const auto misfit = misfit_of([&] {
    for (const Row& row : rows) import.row(row, at);
    import.flush();
  });
  if (!misfit) {
    savepoint.release();
    return true;
  }
  savepoint.rollback();
  at = before;
  return false;
}

/// Row by row, so that an error names its row.
template <class Row>
void import_slow(Import&& import, const std::filesystem::path& path, std::span<const Row> rows,
                 SpoolPosition& at) {
  int64_t number = at.rows_imported;
  for (const Row& row : rows) {
    ++number;
    const auto misfit = misfit_of([&] { import.row(row, at); });
    if (misfit) fail(path, number, row, *misfit);
  }
}

template <class Row>
SpoolPosition import_batch(SQLite::Database& db, int64_t attempt_id, int64_t rank,
                           const std::filesystem::path& path, std::span<const Row> rows,
                           int64_t offset) {
  SpoolPosition at = position(db, attempt_id, rank);
  ASSAY_CHECK(offset >= at.bytes_imported, "a spool import moved backwards");
  if (!import_fast(db, Import(db, attempt_id, rank, kRowsPerInsert), rows, at)) {
    import_slow(Import(db, attempt_id, rank, 1), path, rows, at);
  }
  at.path = path.string();
  at.bytes_imported = offset;
  save(db, attempt_id, rank, at);
  return at;
}

}  // namespace

SpoolPosition Store::spool(int64_t attempt_id, int64_t rank) const {
  return connection_->read([&](SQLite::Database& db) { return position(db, attempt_id, rank); });
}

SpoolPosition Store::import_rows(int64_t attempt_id, int64_t rank,
                                 const std::filesystem::path& path, std::span<const json> rows,
                                 int64_t offset) {
  return connection_->write(
      [&](SQLite::Database& db) { return import_batch(db, attempt_id, rank, path, rows, offset); });
}

SpoolPosition import_text(Store& store, int64_t attempt_id, int64_t rank,
                          const std::filesystem::path& path, std::span<const std::string_view> rows,
                          int64_t offset) {
  return store.connection().write(
      [&](SQLite::Database& db) { return import_batch(db, attempt_id, rank, path, rows, offset); });
}

}  // namespace assay::store
