// Which weights are converted, the layer of Ops that runs them, and the registration.
#include "float8.h"

#include <set>

#include "assay/error.h"
#include "assay/glob.h"
#include "assay/model.h"
#include "assay/plugin.h"
#include "assay/primitive.h"
#include "products.h"

namespace assay::precision {
namespace {

constexpr int64_t kMultiple = 16;  // sides of a matrix that 8-bit hardware takes

/// TorchAO's measured limits on an H100, W (n, k): smaller weights lose time.
bool too_small(int64_t n, int64_t k, const std::string& recipe) {
  if (recipe == "tensorwise") return k <= 4096 && n <= 1024;
  return n <= 2048 || k <= 1024 || (n <= 4096 && k <= 2048);
}

/// y = x W^T of the converted weights through the recipe's products; the others pass on.
class Float8Ops final : public OpsLayer {
 public:
  Float8Ops(std::unique_ptr<Ops> next, std::set<std::string> converted, Float8RecipeId recipe)
      : OpsLayer(std::move(next)), converted_(std::move(converted)), recipe_(recipe) {}

  Tensors linear(const Tensor& x, std::span<const Weight> weights) override {
    std::vector<Weight> mine, others;
    for (const Weight& w : weights) (converts(w) ? mine : others).push_back(w);
    if (mine.empty()) return next().linear(x, weights);
    const Tensors y = float8(x, mine);
    if (others.empty()) return y;
    return merged(weights, y, next().linear(x, others));
  }

 private:
  bool converts(const Weight& w) const { return converted_.contains(w.spec().name); }

  Tensors merged(std::span<const Weight> weights, const Tensors& mine,
                 const Tensors& others) const {
    Tensors all;
    size_t next_mine = 0, next_other = 0;
    for (const Weight& w : weights) {
      all.push_back(converts(w) ? mine[next_mine++] : others[next_other++]);
    }
    return all;
  }

  Tensors float8(const Tensor& x, std::vector<Weight> weights) const {
    const auto forward = [&](const Tensors& in, Tensors& saved) {
      saved = {in[0]};
      Tensors tensors;
      for (const Weight& w : weights) tensors.push_back(w.tensor);
      return float8_linear(in[0], tensors, recipe_);
    };
    return primitive(
        {x}, forward,
        [weights, &recipe = recipe_of(recipe_)](const Tensors& saved, const Tensors& dys) {
          return Tensors{backward(weights, recipe, saved[0], dys)};
        });
  }

  /// Hands dW to the sinks and returns dx.
  static Tensor backward(const std::vector<Weight>& weights, const Float8Recipe& recipe,
                         const Tensor& x, const Tensors& dys) {
    Tensor dx;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (!dys[i].defined()) continue;
      const Tensor dy = rows_of(dys[i]);
      const Tensor part = float8_dx(dy, weights[i].tensor, recipe);
      dx = dx.defined() ? dx.add_(part) : part;
      if (recipe.dw_in_float8) {
        weights[i].sink->add([dy, x = rows_of(x), &recipe] { return float8_dw(dy, x, recipe); });
      } else {
        weights[i].sink->add_product(dy, rows_of(x));
      }
    }
    return dx.defined() ? dx.to(x.scalar_type()).view(x.sizes()) : dx;
  }

  const std::set<std::string> converted_;
  const Float8RecipeId recipe_;
};

}  // namespace

Dtypes Float8::dtypes() const {
  return {.compute = options_.base == "bf16" ? at::kBFloat16 : at::kFloat};
}

bool Float8::converts(const ParameterSpec& spec) const {
  const int64_t n = spec.shape[0], k = spec.shape[1];
  if (n % kMultiple != 0 || k % kMultiple != 0) return false;
  if (options_.auto_filter_small && too_small(n, k, options_.recipe)) return false;
  return !matches_any(options_.filter, spec.name);
}

std::unique_ptr<Ops> Float8::wrap_ops(std::unique_ptr<Ops> next, const RankContext& context) {
  std::vector<ParameterSpec> matrices;
  for (ParameterSpec& spec : context.model.parameters()) {
    if (spec.role == ParameterRole::matrix && spec.shape.size() == 2) {
      matrices.push_back(std::move(spec));
    }
  }
  check_globs("R-F8FILTER", "precision/float8", "filter", options_.filter, matrices);
  std::set<std::string> converted;
  for (const ParameterSpec& spec : matrices) {
    if (converts(spec)) {
      converted.insert(spec.name);
    } else {
      ++context.counters["float8.skipped"];
      context.counters["float8.skipped." + spec.name] = 1;
    }
  }
  if (converted.empty()) {
    throw Error("[R-F8NONE] precision/float8 converts none of " + std::to_string(matrices.size()) +
                    " linear weights",
                "sides must be multiples of 16; see precision.filter and auto_filter_small");
  }
  context.counters["float8.converted"] = static_cast<int64_t>(converted.size());
  register_float8_operators();
  return std::make_unique<Float8Ops>(std::move(next), std::move(converted),
                                     parse_recipe(options_.recipe));
}

}  // namespace assay::precision

ASSAY_PLUGIN(registrar) {
  assay::precision::register_float8_operators();
  registrar.add<assay::precision::Float8>(
      {.name = "float8",
       .summary = "linear layers in emulated 8-bit floats: numerics, no speed",
       .reference = "arXiv:2209.05433, arXiv:2507.16099",
       .provides = {"meta.safe"},
       .rules = {{"R-F8FILTER", "filter == [] or unmatched(filter, facts.matrix_names) == []",
                  "a glob of filter matches no weight of a linear layer"}}});
}
