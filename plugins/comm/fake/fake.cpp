// The fake communicator: each collective as it would end among mirrors of this rank.
#include "fake.h"

#include <ATen/core/grad_mode.h>

#include "assay/plugin.h"

namespace assay::comm {
namespace {

class FakeCommunicator final : public Communicator {
 public:
  using Communicator::Communicator;

 protected:
  std::unique_ptr<Operation> do_start(const Request& request) override {
    const at::NoGradGuard no_grad;
    Tensor out = request.out;
    switch (request.op) {
      case Collective::all_reduce:
        scale(out, request.reduce);
        break;
      case Collective::all_gather:
        out.view({size(), -1}).copy_(request.in.view({1, -1}).expand({size(), -1}));
        break;
      case Collective::reduce_scatter:
        out.view(-1).copy_(request.in.view({size(), -1}).select(0, rank()));
        scale(out, request.reduce);
        break;
      case Collective::all_to_all:
      case Collective::recv:
        out.zero_();
        break;
      default:
        break;
    }
    return nullptr;
  }

 private:
  void scale(Tensor& tensor, ReduceOp op) const {
    if (op == ReduceOp::sum && tensor.scalar_type() != at::kBool) {
      tensor.copy_(tensor.to(at::kDouble).mul(size()));
    }
  }
};

}  // namespace

std::shared_ptr<Communicator> FakeBackend::connect(const GroupSpec& spec) {
  return std::make_shared<FakeCommunicator>(spec);
}

}  // namespace assay::comm

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::comm::FakeBackend>({.name = "fake",
                                           .summary = "any world size without peers, for dry runs",
                                           .provides = {"meta.safe"}});
}
