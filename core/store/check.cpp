// Damage, as SQLite's own checks and the spool counts tell it.
#include "core/store/check.h"

#include "core/store/connection.h"

namespace assay::store {
namespace {

void add_rows(SQLite::Database& db, const char* sql, std::vector<std::string>& found) {
  SQLite::Statement row(db, sql);
  while (row.executeStep()) found.push_back(row.getColumn(0).getString());
}

}  // namespace

std::vector<std::string> find_damage(const std::filesystem::path& file) {
  const Connection connection = Connection::reader(file);
  return connection.read([](SQLite::Database& db) {
    db.exec("PRAGMA trusted_schema=ON");  // the check evaluates json_valid() of a CHECK
    std::vector<std::string> found;
    add_rows(db, "SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check<>'ok'",
             found);
    add_rows(
        db,
        "SELECT 'row ' || coalesce(rowid, '?') || ' of ' || \"table\" || ' refers to a missing row"
        " of ' || parent FROM pragma_foreign_key_check",
        found);
    add_rows(db,
             "SELECT 'attempt ' || f.attempt_id || ' rank ' || f.rank || ': ' || f.rows_declared ||"
             " ' spool rows declared, ' || f.rows_imported || ' imported (' || f.path || ')'"
             " FROM spool_files f WHERE f.rows_declared<>f.rows_imported",
             found);
    return found;
  });
}

}  // namespace assay::store
