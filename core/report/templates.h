// The page of the HTML report: a mustache template and its style sheet.
#pragma once

#include <string>

namespace assay::report {

const std::string& page_template();
const std::string& page_style();

}  // namespace assay::report
