// --resume-from: which checkpoint a run starts from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::host {

struct ResumePoint {
  std::filesystem::path checkpoint{};  ///< absolute
  int64_t step = 0;                    ///< the first that the run trains
};

/// "" (step 0), a folder (a checkpoint, a folder of them, or a run's; the same for every run),
/// "latest" or a step (of the run's own earlier attempts).
class ResumeFrom {
 public:
  /// Throws Error for a folder without a checkpoint that can be read.
  explicit ResumeFrom(const std::string& text);

  bool uses_attempts() const { return uses_attempts_; }

  /// `attempts`: folders of the run's earlier attempts, newest first. Nothing: from step 0, which
  /// is what "latest" means for a run that has no checkpoint. Throws Error for a step that none
  /// has.
  std::optional<ResumePoint> point(const std::vector<std::filesystem::path>& attempts) const;

 private:
  std::optional<ResumePoint> fixed_{};
  std::optional<int64_t> step_{};
  bool uses_attempts_ = false;
};

}  // namespace assay::host
