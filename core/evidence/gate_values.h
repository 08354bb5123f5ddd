// What the gate reads of one build's runs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/evidence/gate.h"
#include "core/store/reader.h"

namespace assay::evidence {

struct BuildValues {
  std::string state{};  ///< "ok", or of the newest run that is not
  std::string machine_id{};
  std::vector<std::pair<std::string, double>>
      values{};  ///< proxies, largest of all runs; loss_bits
};

/// Figures of a cell that must not scatter. `loss_bits`: 48 bits of a hash over the patterns of
/// every loss and gradient norm of its first run, so that they fit a double.
BuildValues build_values(const store::Reader& reader, const std::string& cell_id);

/// Values that the database's anchors hold for a configuration on a machine.
std::vector<GateCell::Anchor> load_anchors(const store::Reader& reader, const std::string& gate,
                                           const std::string& machine_id,
                                           const std::string& config_id, const std::string& anchor);

/// Cells by configuration with a run that ended well: config_id -> newest such cell.
struct ConfiguredCell {
  std::string config_id{}, cell_id{}, slug{};
};
std::vector<ConfiguredCell> configured_cells(const store::Reader& reader, int64_t study_id);

}  // namespace assay::evidence
