// Fields are quoted by libcsv, so that commas, quotes and line ends in them survive.
#include "core/report/csv_field.h"

#include <csv.h>

#include <algorithm>

namespace assay::report {
namespace {

std::string quoted(const std::string& field) {
  const bool plain = std::all_of(field.begin(), field.end(), [](unsigned char c) {
    return c != ',' && c != '"' && c != '\n' && c != '\r' && c != ' ';
  });
  if (plain) return field;
  std::string out(2 * field.size() + 2, '\0');
  out.resize(csv_write(out.data(), out.size(), field.data(), field.size()));
  return out;
}

}  // namespace

std::string csv_line(const std::vector<std::string>& fields) {
  std::string out;
  for (size_t i = 0; i < fields.size(); ++i) out += (i == 0 ? "" : ",") + quoted(fields[i]);
  return out + "\r\n";
}

}  // namespace assay::report
