// The describer that starts `assay-worker describe` beside this executable.
#include <unistd.h>

#include <cstdlib>

#include "core/base/files.h"
#include "core/base/subprocess.h"
#include "core/plugin/catalogue.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kDescribeLimit_s = 600;  // a tokenizer may be trained on the corpus

/// A file of its own that goes away.
class RequestFile {
 public:
  explicit RequestFile(const json& request) {
    std::string name = (cache_dir() / "describe.XXXXXX").string();
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

class WorkerDescriber final : public Describer {
 public:
  json describe(const json& request) override {
    const fs::path worker = executable_dir() / "assay-worker";
    if (!fs::exists(worker)) {
      throw Error(worker.string() + ": there is no worker to describe plugins with",
                  "build or install assay with LibTorch");
    }
    const RequestFile file(request);
    const ProcessResult result =
        run_process({worker.string(), "describe", file.path().string()}, kDescribeLimit_s);
    json answer = json::parse(result.out, nullptr, false);
    if (result.ok() && answer.is_object()) return answer;
    const std::string said = last_line(result.err);
    throw Error("describing ended with " + result.ending() + (said.empty() ? "" : ": " + said));
  }
};

}  // namespace

std::shared_ptr<Describer> worker_describer() { return std::make_shared<WorkerDescriber>(); }

}  // namespace assay
