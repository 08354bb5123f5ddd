// The describer that starts `assay-worker describe` beside this executable.
#include "core/plugin/catalogue.h"
#include "core/plugin/worker_question.h"

namespace assay {
namespace {

constexpr double kDescribeLimit_s = 600;  // a tokenizer may be trained on the corpus

class WorkerDescriber final : public Describer {
 public:
  nlohmann::json describe(const nlohmann::json& request) override {
    return ask_worker("describe", request, kDescribeLimit_s);
  }
};

}  // namespace

std::shared_ptr<Describer> worker_describer() { return std::make_shared<WorkerDescriber>(); }

}  // namespace assay
