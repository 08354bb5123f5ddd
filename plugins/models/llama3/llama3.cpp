// The model of llama3.h: parameters, blocks, forward, and what one token costs.
#include "llama3.h"

#include <cmath>

#include "assay/error.h"
#include "assay/plugin.h"

namespace assay::models {
namespace {

constexpr int kWeightsPerLayer = 9;
constexpr double kStd = 0.02;
constexpr double kHeadCut = 3.0;      // in std
constexpr double kAbsoluteCut = 2.0;  // of the other matrices, whatever their std

Init truncated(double std) { return {Init::Kind::truncated_normal, 0.0, std, kAbsoluteCut / std}; }

Init head_init(int64_t hidden) {
  return {Init::Kind::truncated_normal, 0.0, 1.0 / std::sqrt(hidden), kHeadCut};
}

ParameterSpec norm_scale(std::string name, int64_t hidden) {
  return {std::move(name),
          {hidden},
          {{Axis::hidden}},
          {.kind = Init::Kind::constant, .mean = 1.0},
          ParameterRole::norm};
}

void check(bool holds, const std::string& message, const std::string& hint) {
  if (!holds) throw Error("model/llama3: " + message, hint);
}

}  // namespace

Llama3::Llama3(const Options& options) : options_(options), size_(dimensions(options)) {
  rope_ = {.head_dim = size_.head_dim,
           .theta = options.theta,
           .llama_scaling = options.rope_scaling == "llama",
           .factor = options.rope_factor,
           .low = options.rope_low,
           .high = options.rope_high,
           .original = options.rope_original};
  attention_ = {.kind = options.attention,
                .head_dim = size_.head_dim,
                .scale = 1.0 / std::sqrt(static_cast<double>(size_.head_dim))};
}

void Llama3::bind(const ModelContext& context) {
  const auto text = [](int64_t number) { return std::to_string(number); };
  check(options_.head_dim > 0 || size_.hidden % size_.heads == 0,
        "[R-HEADS] hidden " + text(size_.hidden) + " is no multiple of heads " + text(size_.heads),
        "set model.head_dim, or a number of heads that divides hidden");
  check(
      size_.heads % size_.kv_heads == 0,
      "[R-GQA] heads " + text(size_.heads) + " is no multiple of kv_heads " + text(size_.kv_heads),
      "set model.kv_heads to a divisor of heads");
  check(size_.head_dim % 2 == 0,
        "[R-ROPE] head_dim " + text(size_.head_dim) + " is odd; rope turns pairs",
        "set model.head_dim to an even number");
  const bool own = options_.vocab == "flavour" || (options_.vocab == "auto" && size_.vocab > 0);
  vocab_ = own ? size_.vocab : context.data_vocabulary;
  check(vocab_ > 0,
        own ? "[R-VOCAB] flavour " + options_.flavour + " has no vocabulary of its own"
            : "[R-VOCAB] the vocabulary of the data is not known",
        own ? "set model.vocab: data" : "name a data component, or set model.vocab: flavour");
  check(vocab_ >= context.data_vocabulary,
        "[R-VOCAB] the flavour's vocabulary " + text(vocab_) + " is below the data's " +
            text(context.data_vocabulary),
        "set model.vocab: data");
}

std::vector<ParameterSpec> Llama3::parameters() const {
  const auto [d, layers, heads, kv_heads, f, table_vocab, tied, dh] = size_;
  const AxisSpec vocab{Axis::vocab}, hidden{Axis::hidden}, ffn{Axis::ffn};
  const AxisSpec q{Axis::heads, dh}, kv{Axis::kv_heads, dh};
  std::vector<ParameterSpec> list;
  const auto matrix = [&](std::string name, Shape shape, AxisSpec out, AxisSpec in, double std) {
    list.push_back({std::move(name), std::move(shape), {out, in}, truncated(std)});
  };
  const Init embedding = tied ? head_init(d) : Init{.kind = Init::Kind::normal};
  list.push_back({"model.embed_tokens.weight",
                  {vocab_, d},
                  {vocab, hidden},
                  embedding,
                  ParameterRole::embedding});
  for (int64_t l = 0; l < layers; ++l) {
    const std::string at = "model.layers." + std::to_string(l) + ".";
    const double deep = kStd / std::sqrt(2.0 * (l + 1));
    list.push_back(norm_scale(at + "input_layernorm.weight", d));
    matrix(at + "self_attn.q_proj.weight", {heads * dh, d}, q, hidden, kStd);
    matrix(at + "self_attn.k_proj.weight", {kv_heads * dh, d}, kv, hidden, kStd);
    matrix(at + "self_attn.v_proj.weight", {kv_heads * dh, d}, kv, hidden, kStd);
    matrix(at + "self_attn.o_proj.weight", {d, heads * dh}, hidden, q, deep);
    list.push_back(norm_scale(at + "post_attention_layernorm.weight", d));
    matrix(at + "mlp.gate_proj.weight", {f, d}, ffn, hidden, kStd);  // w1
    matrix(at + "mlp.up_proj.weight", {f, d}, ffn, hidden, deep);    // w3
    matrix(at + "mlp.down_proj.weight", {d, f}, hidden, ffn, deep);  // w2
  }
  list.push_back(norm_scale("model.norm.weight", d));
  if (!tied) {
    list.push_back(
        {"lm_head.weight", {vocab_, d}, {vocab, hidden}, head_init(d), ParameterRole::head});
  }
  return list;
}

std::vector<BlockSpec> Llama3::blocks() const {
  const int layers = static_cast<int>(size_.layers), norm = 1 + kWeightsPerLayer * layers;
  std::vector<BlockSpec> list{{BlockSpec::Kind::embedding, "embedding", -1, {0}}};
  for (int l = 0; l < layers; ++l) {
    BlockSpec block{BlockSpec::Kind::layer, "layers." + std::to_string(l), l};
    for (int w = 0; w < kWeightsPerLayer; ++w)
      block.weights.push_back(1 + kWeightsPerLayer * l + w);
    list.push_back(std::move(block));
  }
  list.push_back({BlockSpec::Kind::head, "head", -1, {norm, size_.tied ? 0 : norm + 1}});
  return list;
}

Tensor Llama3::forward(const BlockSpec& block, const BlockInput& in, BlockWeights w,
                       Ops& ops) const {
  switch (block.kind) {
    case BlockSpec::Kind::embedding:
      return ops.embedding(in.x, in.ids, w[0]);
    case BlockSpec::Kind::layer:
      return layer(in, w, ops);
    case BlockSpec::Kind::head:
      return cross_entropy(ops, ops.norm(in.x, w[0], options_.eps), w[1], in.labels, in.weights);
  }
  ASSAY_CHECK(false, "llama3 has no such block");
}

Tensor Llama3::layer(const BlockInput& in, BlockWeights w, Ops& ops) const {
  const auto add = [&](const Tensor& x, const Tensor& y) {
    const Tensor terms[] = {x, y};
    return ops.pointwise(Pointwise::residual, terms);
  };
  AttentionSpec spec = attention_;
  if (options_.mask == "document") spec.documents = in.documents;
  const Tensors qkv = ops.linear(ops.norm(in.x, w[0], options_.eps), w.subspan(1, 3));
  const Tensor q = ops.rope(qkv[0], in.positions, rope_);
  const Tensor k = ops.rope(qkv[1], in.positions, rope_);
  const Tensor mixed = attention(ops, q, k, qkv[2], spec);
  const Tensor h = add(in.x, ops.linear(mixed, w.subspan(4, 1))[0]);
  return add(h, swiglu_mlp(ops, ops.norm(h, w[5], options_.eps), w.subspan(6, 3)));
}

Flops Llama3::flops_per_token(int64_t seq_len) const {
  double all = 0, embedding = 0;
  for (const ParameterSpec& p : parameters()) {
    const auto numel = static_cast<double>(whole(p.shape).numel());
    all += numel;
    if (p.role == ParameterRole::embedding && !size_.tied) embedding += numel;
  }
  const double scores = 6.0 * size_.layers * size_.heads * size_.head_dim * seq_len;  // causal half
  return {{"tt", 6 * (all - embedding) + 2 * scores},
          {"palm", 6 * all + 2 * scores},
          {"causal_half", 6 * (all - embedding) + scores}};
}

std::map<std::string, int64_t> Llama3::facts() const {
  return {{"heads", size_.heads},   {"kv_heads", size_.kv_heads},
          {"layers", size_.layers}, {"head_dim", size_.head_dim},
          {"hidden", size_.hidden}, {"ffn", size_.ffn},
          {"vocab", vocab_},        {"tied", size_.tied ? 1 : 0}};
}

}  // namespace assay::models

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::models::Llama3>(
      {.name = "llama3",
       .summary = "decoder with RMSNorm, grouped-query attention, RoPE and SwiGLU",
       .reference = "arXiv:2407.21783",
       .provides = {"meta.safe", "model.blocks", "model.linear", "model.causal"},
       .rules = {{"R-HEADS", "head_dim > 0 or facts.hidden % facts.heads == 0",
                  "hidden is a multiple of heads unless head_dim is set"},
                 {"R-GQA", "facts.heads % facts.kv_heads == 0",
                  "each key and value head serves the same number of query heads"},
                 {"R-ROPE", "facts.head_dim % 2 == 0", "rope turns pairs of elements"}}});
}
