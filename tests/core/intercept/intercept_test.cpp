// What core relies on of LibTorch's private parts: observers see every operator, hooks every saved
// tensor, primitives pass gradients. If the pinned version changes one of these, this fails first.
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include "assay/primitive.h"
#include "core/intercept/op_observer.h"
#include "core/intercept/op_profile.h"
#include "core/intercept/saved_hooks.h"
#include "core/train/kernels.h"

namespace assay::intercept {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(OpObserver, SeesForwardAndBackwardBelowAutograd) {
  std::vector<std::string> forward, backward;
  const Tensor x = at::ones({2, 3}).requires_grad_();
  const Tensor w = at::ones({3, 3}).requires_grad_();
  Tensor y;
  {
    const OpObserverScope watching([&](OpCall& call) {
      forward.emplace_back(call.name());
      call.run();
    });
    y = x.mm(w).sum();
  }
  {
    const OpObserverScope watching([&](OpCall& call) {
      backward.emplace_back(call.name());
      call.run();
    });
    y.backward();
  }
  EXPECT_TRUE(contains(forward, "aten::mm"));
  EXPECT_TRUE(contains(backward, "aten::mm"));
  EXPECT_TRUE(x.grad().equal(at::ones({2, 3}).mul(3)));
}

TEST(OpObserver, OutsideAScopeNothingIsSeenAndTheInnermostOneRuns) {
  int outer = 0, inner = 0;
  const Tensor x = at::ones({2});
  {
    const OpObserverScope one([&](OpCall& call) {
      ++outer;
      call.run();
    });
    {
      const OpObserverScope two([&](OpCall& call) {
        ++inner;
        call.run();
      });
      x.add(1);
    }
    x.add(1);
  }
  x.add(1);
  EXPECT_EQ(inner, 1);
  EXPECT_EQ(outer, 1);
}

TEST(OpObserver, MayAnswerInsteadOfTheOperator) {
  const Tensor x = at::ones({2, 2});
  const OpObserverScope watching([&](OpCall& call) {
    call.name() == "aten::mm" ? call.answer({at::zeros({2, 2})}) : call.run();
  });
  EXPECT_TRUE(x.mm(x).equal(at::zeros({2, 2})));
}

TEST(OpObserver, SeesTheListArgumentsAndOutputsOfAnOperatorOfOurs) {
  const Tensor x = at::ones({2, 3});
  size_t weights = 0, outputs = 0;
  const OpObserverScope watching([&](OpCall& call) {
    if (call.name() == "assay::linear") weights = call.list_argument(1).size();
    call.run();
    if (call.name() == "assay::linear") outputs = call.outputs().size();
  });
  train::call_linear(x, {at::ones({4, 3}), at::ones({5, 3})});
  EXPECT_EQ(weights, 2u);
  EXPECT_EQ(outputs, 2u);
}

TEST(OpObserver, AnExceptionLeavesTheScopeInOrder) {
  const Tensor x = at::ones({2});
  EXPECT_THROW(
      {
        const OpObserverScope watching([](OpCall&) { throw std::runtime_error("stop"); });
        x.add(1);
      },
      std::runtime_error);
  EXPECT_TRUE(x.add(1).equal(at::ones({2}).mul(2)));
}

TEST(OpProfile, CountsForwardAndBackwardAndOnlyWhileAlive) {
  const Tensor x = at::ones({64, 64}).requires_grad_();
  std::map<std::string, OpTotal> totals;
  {
    const OpProfile profile;
    x.mm(x).sum().backward();
    totals = profile.totals();
  }
  EXPECT_EQ(totals.at("aten::mm").calls, 3);  // one forward, two backward
  const OpProfile second;
  EXPECT_TRUE(second.totals().empty());
}

TEST(OpProfile, TimeOfAnInnerOperatorIsNotItsCallers) {
  const Tensor x = at::ones({512, 512});
  const OpProfile profile;
  at::matmul(x, x);  // calls aten::mm, which does the work
  const auto& totals = profile.totals();
  EXPECT_EQ(totals.at("aten::matmul").calls, 1);
  EXPECT_LT(totals.at("aten::matmul").self_ns, totals.at("aten::mm").self_ns);
}

TEST(OpProfile, OneAtATimeOnAThread) {
  const OpProfile profile;
  EXPECT_THROW(OpProfile{}, std::logic_error);
  at::ones({2});
  EXPECT_FALSE(profile.totals().empty()) << "the refused one took nothing away";
}

TEST(SavedHooks, SeeEverySavedTensorAndMayReplaceIt) {
  int packed = 0, unpacked = 0;
  const Tensor x = at::ones({3}).mul(2).requires_grad_();
  Tensor y;
  {
    const SavedHooksScope hooks([&](const Tensor& saved) {
      ++packed;
      return [&unpacked, saved = saved.detach()] {
        ++unpacked;
        return saved.mul(10);
      };
    });
    EXPECT_NE(innermost_pack(), nullptr);
    y = x.square().sum();
  }
  EXPECT_EQ(innermost_pack(), nullptr);
  y.backward();
  EXPECT_EQ(packed, 1);
  EXPECT_EQ(unpacked, 1);
  EXPECT_TRUE(x.grad().equal(at::ones({3}).mul(2 * 2 * 10))) << "gradient of the replaced tensor";
}

TEST(Primitive, PassesGradientsOfEveryInputAndKeepsWhatItSaved) {
  const Tensor a = at::ones({2}).mul(3).requires_grad_();
  const Tensor b = at::ones({2}).mul(5).requires_grad_();
  const auto product = primitive(
      {a, b},
      [](const Tensors& in, Tensors& saved) {
        saved = in;
        return Tensors{in[0].mul(in[1])};
      },
      [](const Tensors& saved, const Tensors& dy) {
        return Tensors{dy[0].mul(saved[1]), dy[0].mul(saved[0])};
      });
  product[0].sum().backward();
  EXPECT_TRUE(a.grad().equal(at::ones({2}).mul(5)));
  EXPECT_TRUE(b.grad().equal(at::ones({2}).mul(3)));
}

TEST(Primitive, AnOutputThatNobodyUsesHasAnUndefinedGradient) {
  const Tensor x = at::ones({2}).requires_grad_();
  bool undefined = false;
  const auto out = primitive(
      {x},
      [](const Tensors& in, Tensors&) {
        return Tensors{in[0].mul(2), in[0].mul(3)};
      },
      [&](const Tensors&, const Tensors& dy) {
        undefined = !dy[1].defined();
        return Tensors{dy[0].mul(2)};
      });
  out[0].sum().backward();
  EXPECT_TRUE(undefined);
  EXPECT_TRUE(x.grad().equal(at::ones({2}).mul(2)));
}

TEST(Primitive, WithoutGradModeNothingIsSaved) {
  const at::NoGradGuard no_grad;
  const Tensor x = at::ones({2}).requires_grad_();
  const auto out = primitive(
      {x}, [](const Tensors& in, Tensors&) { return Tensors{in[0].mul(2)}; },
      [](const Tensors&, const Tensors&) { return Tensors{}; });
  EXPECT_FALSE(out[0].requires_grad());
}

}  // namespace
}  // namespace assay::intercept
