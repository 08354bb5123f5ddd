// Documents: a command's answer as one line of JSON on standard output, whatever plugins print.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>

namespace assay::worker {

/// Prints what `make` gives. While it runs, standard output is standard error.
void print_document(const std::function<nlohmann::json()>& make);

}  // namespace assay::worker
