// Questions to assay-worker: what only a process with LibTorch and plugin code can answer.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace assay {

/// Runs `assay-worker COMMAND REQUEST.json` beside this executable and gives the document that it
/// prints. Throws Error when there is no worker, or with the last line it said when it fails.
nlohmann::json ask_worker(const std::string& command, const nlohmann::json& request,
                          double limit_s);

}  // namespace assay
