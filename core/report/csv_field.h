// One line of CSV (RFC 4180), written with libcsv.
#pragma once

#include <string>
#include <vector>

namespace assay::report {

/// Quoted fields, commas, CR LF. An empty field stays empty, without quotes: unmeasured.
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace assay::report
