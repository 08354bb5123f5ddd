// Doctor: what of this machine would spoil runs or their timings.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace assay::host {

enum class Health { good, warning, problem };

struct Finding {
  std::string topic{};  ///< "disk", "clock", ...
  Health health = Health::good;
  std::string text{};
  std::string advice{};  ///< empty when there is nothing to do
};

/// Where the checks look; a test points them elsewhere.
struct DoctorPaths {
  std::filesystem::path results{};  ///< folder of the database, may not exist yet
  std::filesystem::path worker{};
  std::filesystem::path system = "/";  ///< above proc/ and sys/
};

/// problem: runs cannot start. warning: figures in seconds would be doubtful.
std::vector<Finding> examine(const DoctorPaths& paths);

}  // namespace assay::host
