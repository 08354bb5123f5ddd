// The model of moe.h: weights of a mixture, its forward, and its registration.
#include "moe.h"

#include "assay/plugin.h"

namespace assay::models {
namespace {

constexpr size_t kMixtureWeights = 4;  // router, w1, w3, w2; then those of the shared MLP

// Experts are the first dimension of one parameter, so that expert parallelism cuts whole experts.
ParameterSpec expert_matrix(const std::string& name, Shape shape, Axis out, Axis in, double std) {
  return matrix(name, std::move(shape), {{Axis::expert}, {out}, {in}}, std);
}

}  // namespace

Moe::Moe(const Options& options)
    : Decoder("model/moe", options, dimensions(options)),
      options_(options),
      mixture_(mixture(options)),
      route_(route_spec(options)),
      balance_(options) {}

// The rules of the manifest, for who assembles a recipe without a plan.
void Moe::check_choice() const {
  const auto text = [](int64_t number) { return std::to_string(number); };
  const int64_t experts = mixture_.experts, groups = route_.groups;
  check(route_.top_k <= experts,
        "[R-TOPK] top_k " + text(route_.top_k) + " is above experts " + text(experts),
        "lower model.top_k");
  if (groups == 1) return;
  check(experts % groups == 0 && experts / groups >= 2,
        "[R-GROUPS] " + text(experts) + " experts do not make " + text(groups) +
            " equal groups of two or more",
        "set model.groups to a divisor of the experts");
  check(route_.limited_groups <= groups && route_.top_k <= route_.limited_groups * experts / groups,
        "[R-GROUPS] top_k " + text(route_.top_k) + " experts are not in limited_groups " +
            text(route_.limited_groups) + " of " + text(groups) + " groups",
        "raise model.limited_groups, up to model.groups, or lower model.top_k");
}

void Moe::prepare(const ModelRun& run) {
  check_choice();
  balance_.prepare(run, size().layers, mixture_.experts);
}

std::vector<ParameterSpec> Moe::mlp_parameters(int64_t l) const {
  const int64_t d = size().hidden, experts = mixture_.experts, f = mixture_.width;
  const std::string at = layer_name(l) + "mlp.";
  if (!is_mixture(options_, l)) return swiglu_parameters(at, d, size().ffn, l);
  ParameterSpec router =
      matrix(at + "gate.weight", {experts, d}, {{Axis::none}, {Axis::hidden}}, kStd);
  router.role = ParameterRole::router;
  using enum Axis;
  std::vector<ParameterSpec> list{
      std::move(router),
      expert_matrix(at + "experts.gate_proj.weight", {experts, f, d}, ffn, hidden, kStd),
      expert_matrix(at + "experts.up_proj.weight", {experts, f, d}, ffn, hidden, deep_std(l)),
      expert_matrix(at + "experts.down_proj.weight", {experts, d, f}, hidden, ffn, deep_std(l))};
  if (mixture_.shared_width > 0) {
    for (ParameterSpec& spec :
         swiglu_parameters(at + "shared_experts.", d, mixture_.shared_width, l)) {
      list.push_back(std::move(spec));
    }
  }
  return list;
}

Tensor Moe::mlp(const BlockSpec& block, const BlockInput& in, const Tensor& x, BlockWeights w,
                Ops& ops) const {
  if (!is_mixture(options_, block.layer)) return swiglu_mlp(ops, x, w);
  Routing routing = ops.route(rows_of(x), w[0], balance_.bias(block.layer), route_);
  routing.gates = balance_.note(routing, block.layer, in.microbatch);
  const Tensor y = moe(ops, x, routing, w.subspan(1, 3), options_.pad_rows);
  if (mixture_.shared_width == 0) return y;
  const Tensor terms[] = {y, swiglu_mlp(ops, x, w.subspan(kMixtureWeights))};
  return ops.pointwise(Pointwise::residual, terms);
}

double Moe::active_share(const ParameterSpec& spec) const {
  const bool of_expert = spec.axes.front().axis == Axis::expert;
  return of_expert ? static_cast<double>(route_.top_k) / static_cast<double>(mixture_.experts) : 1;
}

std::map<std::string, int64_t> Moe::facts() const {
  auto facts = Decoder::facts();
  int64_t layers = 0;
  for (int64_t l = 0; l < size().layers; ++l) layers += is_mixture(options_, l) ? 1 : 0;
  facts["experts"] = mixture_.experts;
  facts["top_k"] = route_.top_k;
  facts["expert_ffn"] = mixture_.width;
  facts["shared_ffn"] = mixture_.shared_width;
  facts["moe_layers"] = layers;
  facts["force_balance"] = route_.force_balance ? 1 : 0;
  return facts;
}

}  // namespace assay::models

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::models::Moe>(
      {.name = "moe",
       .summary = "the decoder of llama3 with mixtures of experts",
       .reference = "arXiv:2401.04088",
       .provides = {"meta.safe", "model.blocks", "model.linear", "model.moe", "model.causal"},
       .rules = {
           {"R-HEADS", "head_dim > 0 or facts.hidden % facts.heads == 0",
            "hidden is a multiple of heads unless head_dim is set"},
           {"R-GQA", "facts.heads % facts.kv_heads == 0",
            "each key and value head serves the same number of query heads"},
           {"R-ROPE", "facts.head_dim % 2 == 0", "rope turns pairs of elements"},
           {"R-TOPK", "top_k <= facts.experts", "a token goes to top_k different experts"},
           {"R-GROUPS",
            "groups == 1 or (facts.experts % groups == 0 and facts.experts >= 2 * groups and "
            "limited_groups <= groups and top_k * groups <= limited_groups * facts.experts)",
            "groups are equal, of two experts or more, and limited_groups of them hold top_k"},
           {"R-TPFFN", "facts.shared_ffn % mesh.tp == 0",
            "mesh.tp must divide the width of the shared experts"},
           {"R-EPSP", "mesh.tp == 1 or parallel.tp.sp",
            "without sp every tp rank would send the same tokens to the experts"}}});
}
