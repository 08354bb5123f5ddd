// Reporter: where a training run sends its rows and its progress.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace assay::train {

class Reporter {
 public:
  virtual ~Reporter() = default;
  /// One spool row: {"t": table, columns...}.
  virtual void row(const nlohmann::json& spool_row) = 0;
  virtual void phase(std::string_view name) = 0;
  virtual void progress(int64_t step, int64_t steps, double tokens_per_s, double loss,
                        int64_t allocated_bytes) = 0;
};

}  // namespace assay::train
