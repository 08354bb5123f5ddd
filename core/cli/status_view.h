// What `assay status` shows: counts per state, who runs, what failed, what is left.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/store/reader.h"

namespace assay::cli {

struct RunStatus {
  int64_t run_id = 0;
  std::string slug{}, state{}, reason{}, phase{};
  int64_t slot = 0;
  std::optional<int64_t> step{}, steps{}, heartbeat_us{};
};

struct SupervisorStatus {
  int64_t pid = 0, started_us = 0, heartbeat_us = 0;
  bool alive = false;
};

struct StudyStatus {
  std::string study{};
  int64_t cells = 0;
  std::map<std::string, int64_t> counts{};  ///< runs by state
  std::vector<RunStatus> running{}, bad{};
  std::vector<SupervisorStatus> supervisors{};  ///< not ended by their own record
  std::optional<double> median_run_s{};         ///< of the runs that ended
  int64_t skips = 0;

  int64_t runs() const;
  int64_t left() const;  ///< queued and running
  bool supervised() const;
};

StudyStatus load_status(const store::Reader& reader, const store::StudyInfo& study);

std::string status_text(const StudyStatus& status, bool failed_only);
nlohmann::json status_json(const StudyStatus& status);

}  // namespace assay::cli
