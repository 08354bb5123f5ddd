// The manifest says which step comes next; nothing else of a checkpoint is read here.
#include "core/host/resume_point.h"

#include "assay/error.h"
#include "core/base/units.h"
#include "core/checkpoint/folder.h"

namespace assay::host {
namespace {

constexpr const char* kLatest = "latest";

ResumePoint point_of(const std::filesystem::path& checkpoint) {
  return {.checkpoint = std::filesystem::absolute(checkpoint),
          .step = checkpoint::read_manifest(checkpoint).step};
}

bool has_checkpoint(const std::filesystem::path& folder, std::optional<int64_t> step) {
  for (const auto& saved : checkpoint::saved_steps(folder / checkpoint::kFolderName)) {
    if (!step || saved.step == *step) return true;
  }
  return false;
}

}  // namespace

ResumeFrom::ResumeFrom(const std::string& text) {
  if (text.empty()) return;
  step_ = parse_integer(text);
  uses_attempts_ = step_.has_value() || text == kLatest;
  if (!uses_attempts_) fixed_ = point_of(checkpoint::find_checkpoint(text));
}

std::optional<ResumePoint> ResumeFrom::point(
    const std::vector<std::filesystem::path>& attempts) const {
  if (!uses_attempts_) return fixed_;
  for (const auto& folder : attempts) {
    if (has_checkpoint(folder, step_)) return point_of(checkpoint::find_checkpoint(folder, step_));
  }
  if (!step_) return std::nullopt;
  throw Error("no earlier attempt has a checkpoint of step " + std::to_string(*step_),
              "--resume-from latest takes the newest, a folder takes that one");
}

}  // namespace assay::host
