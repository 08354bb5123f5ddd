// Query results as text: aligned columns, CSV, JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/store/table.h"

namespace assay::cli {

/// Header, rule, rows; numbers to the right, NULL empty.
std::string table_text(const store::Table& table);
std::string table_csv(const store::Table& table);
/// {"schema_version":1,"columns":[...],"rows":[[...]]}
nlohmann::json table_json(const store::Table& table);

}  // namespace assay::cli
