// A group of one rank: every collective is a copy from input to output.
#include "assay/communicator.h"

#include <ATen/core/grad_mode.h>

namespace assay {
namespace {

class SoloCommunicator final : public Communicator {
 public:
  using Communicator::Communicator;

 protected:
  std::unique_ptr<Operation> do_start(const Request& request) override {
    if (request.in.defined() && !request.in.is_same(request.out)) {
      const at::NoGradGuard no_grad;
      at::Tensor out = request.out;
      out.view(-1).copy_(request.in.view(-1));
    }
    return nullptr;
  }
};

}  // namespace

std::shared_ptr<Communicator> solo_communicator(GroupSpec spec) {
  ASSAY_CHECK(spec.size() == 1, "a solo communicator has one rank");
  return std::make_shared<SoloCommunicator>(std::move(spec));
}

}  // namespace assay
