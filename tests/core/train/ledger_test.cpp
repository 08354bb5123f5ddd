// Saved-activation bytes, as the ledger counts them, equal the closed forms of recipes 3.1 exactly.
#include "recipes.h"

namespace assay::train {
namespace {

constexpr int64_t kTokens = 2 * 16, kHidden = 64, kKv = 32, kFfn = 96, kHeads = 4, kLayers = 2;

int64_t measured(const std::string& memory, const std::string& precision) {
  auto config = small_config();
  config["memory"] = {{"name", memory}};
  config["precision"] = {{"name", precision}};
  return make_trainer(config)->step(0, /*measure_activations=*/true).saved_activation_bytes;
}

// Outside the layers: the head's norm keeps x and rstd, cross entropy the normed input and the max.
int64_t head_bytes(int64_t e, int64_t es) { return kTokens * (2 * kHidden * e + 2 * es); }

// Loss of one token: logarithm keeps sum exp; mul keeps nothing of a constant mask.
int64_t loss_bytes(int64_t) { return 0; }

struct Dtype {
  const char* name;
  int64_t e, es;
};

class Layers : public testing::TestWithParam<Dtype> {};

TEST_P(Layers, KeepTheSavedListOfOneLayer) {
  const auto [name, e, es] = GetParam();
  const int64_t layer =
      e * kTokens * (6 * kHidden + 2 * kKv + 4 * kFfn) + es * kTokens * (2 + kHeads);
  const int64_t rest =
      measured("none", name) - kLayers * layer - head_bytes(e, es) - loss_bytes(es);
  // What is left must not depend on the layers: the full policy has the same rest.
  const int64_t full_rest =
      measured("full", name) - kLayers * e * kTokens * kHidden - head_bytes(e, es) - loss_bytes(es);
  EXPECT_EQ(rest, full_rest);
}

TEST_P(Layers, KeepTheirInputsAloneUnderFullRecompute) {
  const auto [name, e, es] = GetParam();
  const int64_t layer =
      e * kTokens * (6 * kHidden + 2 * kKv + 4 * kFfn) + es * kTokens * (2 + kHeads);
  EXPECT_EQ(measured("none", name) - measured("full", name),
            kLayers * (layer - e * kTokens * kHidden));
}

TEST_P(Layers, KeepTheSelectedOutputs) {
  const auto [name, e, es] = GetParam();
  // x, wq, wv, w1, w2 outputs and attention's two: 4d + kd + f, and the lse.
  const int64_t layer = e * kTokens * (4 * kHidden + kKv + kFfn) + es * kTokens * kHeads;
  EXPECT_EQ(measured("selective_op", name) - measured("full", name),
            kLayers * (layer - e * kTokens * kHidden));
}

INSTANTIATE_TEST_SUITE_P(Dtypes, Layers,
                         testing::Values(Dtype{"fp32", 4, 4}, Dtype{"bf16", 2, 4},
                                         Dtype{"fp64", 8, 8}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace assay::train
