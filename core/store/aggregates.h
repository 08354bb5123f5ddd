// Aggregates that `assay sql` and the readers add to SQLite: median(x), p10(x).
#pragma once

namespace SQLite {
class Database;
}

namespace assay::store {

/// Type-7 quantiles over the non-NULL values of a group; NULL for an empty one.
void add_aggregates(SQLite::Database& db);

}  // namespace assay::store
