// A request travels as a file, the answer on standard output.
#include "core/plugin/worker_question.h"

#include <unistd.h>

#include "assay/error.h"
#include "core/base/files.h"
#include "core/base/subprocess.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// A file of its own that goes away.
class RequestFile {
 public:
  explicit RequestFile(const json& request) {
    std::string name = (cache_dir() / "question.XXXXXX").string();
    const int fd = ::mkstemp(name.data());
    if (fd < 0) throw Error(name + ": cannot be created");
    ::close(fd);
    path_ = name;
    write_file_atomically(path_, request.dump());
  }
  RequestFile(const RequestFile&) = delete;
  RequestFile& operator=(const RequestFile&) = delete;
  ~RequestFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// The last lines of what a process said before it died.
std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of(" \n");
  if (end == std::string::npos) return "";
  const size_t start = text.rfind('\n', end);
  return text.substr(start == std::string::npos ? 0 : start + 1,
                     end + 1 - (start == std::string::npos ? 0 : start + 1));
}

}  // namespace

json ask_worker(const std::string& command, const json& request, double limit_s) {
  const fs::path worker = executable_dir() / "assay-worker";
  if (!fs::exists(worker)) {
    throw Error(worker.string() + ": there is no worker to ask",
                "build or install assay with LibTorch");
  }
  const RequestFile file(request);
  const ProcessResult result =
      run_process({worker.string(), command, file.path().string()}, limit_s);
  json answer = json::parse(result.out, nullptr, false);
  if (result.ok() && answer.is_object()) return answer;
  const std::string said = last_line(result.err);
  throw Error("assay-worker " + command + " ended with " + result.ending() +
              (said.empty() ? "" : ": " + said));
}

}  // namespace assay
