// The decoder of decoder.h: parameters, blocks, forward, and what one token costs.
#include "decoder.h"

#include <cmath>

#include "assay/error.h"

namespace assay::models {
namespace {

constexpr size_t kAttentionWeights = 6;  // norm, q, k, v, o, norm
constexpr double kHeadCut = 3.0;         // in std
constexpr double kAbsoluteCut = 2.0;     // of the other matrices, whatever their std

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

void change(int64_t& size, int64_t option) {
  if (option > 0) size = option;
}

void append(std::vector<ParameterSpec>& list, std::vector<ParameterSpec> more) {
  for (ParameterSpec& spec : more) list.push_back(std::move(spec));
}

}  // namespace

Dimensions changed(Dimensions size, const DecoderOptions& options) {
  change(size.hidden, options.hidden);
  change(size.layers, options.layers);
  change(size.heads, options.heads);
  change(size.kv_heads, options.kv_heads);
  change(size.ffn, options.ffn);
  size.head_dim = options.head_dim > 0 ? options.head_dim : size.hidden / size.heads;
  if (options.tied != "flavour") size.tied = options.tied == "true";
  return size;
}

ParameterSpec matrix(std::string name, Shape shape, std::vector<AxisSpec> axes, double std) {
  const Init init{Init::Kind::truncated_normal, 0.0, std, kAbsoluteCut / std};
  return {std::move(name), std::move(shape), std::move(axes), init};
}

double deep_std(int64_t layer) { return kStd / std::sqrt(2.0 * static_cast<double>(layer + 1)); }

std::string layer_name(int64_t layer) { return "model.layers." + std::to_string(layer) + "."; }

std::vector<ParameterSpec> swiglu_parameters(const std::string& prefix, int64_t hidden, int64_t ffn,
                                             int64_t layer) {
  const AxisSpec d{Axis::hidden}, f{Axis::ffn};
  return {matrix(prefix + "gate_proj.weight", {ffn, hidden}, {f, d}, kStd),
          matrix(prefix + "up_proj.weight", {ffn, hidden}, {f, d}, deep_std(layer)),
          matrix(prefix + "down_proj.weight", {hidden, ffn}, {d, f}, deep_std(layer))};
}

Decoder::Decoder(std::string id, const DecoderOptions& options, const Dimensions& size)
    : id_(std::move(id)), options_(options), size_(size) {
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

void Decoder::check(bool holds, const std::string& message, const std::string& hint) const {
  if (!holds) throw Error(id_ + ": " + message, hint);
}

void Decoder::bind(const ModelContext& context) {
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

std::vector<ParameterSpec> Decoder::layer_parameters(int64_t l) const {
  const int64_t d = size_.hidden, heads = size_.heads * size_.head_dim;
  const int64_t kv_heads = size_.kv_heads * size_.head_dim;
  const AxisSpec hidden{Axis::hidden}, q{Axis::heads, size_.head_dim};
  const AxisSpec kv{Axis::kv_heads, size_.head_dim};
  const std::string at = layer_name(l);
  std::vector<ParameterSpec> list{
      norm_scale(at + "input_layernorm.weight", d),
      matrix(at + "self_attn.q_proj.weight", {heads, d}, {q, hidden}, kStd),
      matrix(at + "self_attn.k_proj.weight", {kv_heads, d}, {kv, hidden}, kStd),
      matrix(at + "self_attn.v_proj.weight", {kv_heads, d}, {kv, hidden}, kStd),
      matrix(at + "self_attn.o_proj.weight", {d, heads}, {hidden, q}, deep_std(l)),
      norm_scale(at + "post_attention_layernorm.weight", d)};
  append(list, mlp_parameters(l));
  return list;
}

std::vector<ParameterSpec> Decoder::parameters() const {
  const int64_t d = size_.hidden;
  const AxisSpec vocab{Axis::vocab}, hidden{Axis::hidden};
  const Init embedding = size_.tied ? head_init(d) : Init{.kind = Init::Kind::normal};
  std::vector<ParameterSpec> list{{"model.embed_tokens.weight",
                                   {vocab_, d},
                                   {vocab, hidden},
                                   embedding,
                                   ParameterRole::embedding}};
  for (int64_t l = 0; l < size_.layers; ++l) append(list, layer_parameters(l));
  list.push_back(norm_scale("model.norm.weight", d));
  if (!size_.tied) {
    list.push_back(
        {"lm_head.weight", {vocab_, d}, {vocab, hidden}, head_init(d), ParameterRole::head});
  }
  return list;
}

std::vector<BlockSpec> Decoder::blocks() const {
  std::vector<BlockSpec> list{{BlockSpec::Kind::embedding, "embedding", -1, {0}}};
  int next = 1;
  for (int64_t l = 0; l < size_.layers; ++l) {
    BlockSpec block{BlockSpec::Kind::layer, "layers." + std::to_string(l), l};
    for (size_t w = kAttentionWeights + mlp_parameters(l).size(); w > 0; --w) {
      block.weights.push_back(next++);
    }
    list.push_back(std::move(block));
  }
  list.push_back({BlockSpec::Kind::head, "head", -1, {next, size_.tied ? 0 : next + 1}});
  return list;
}

Tensor Decoder::forward(const BlockSpec& block, const BlockInput& in, BlockWeights w,
                        Ops& ops) const {
  switch (block.kind) {
    case BlockSpec::Kind::embedding:
      return ops.embedding(in.x, in.ids, w[0]);
    case BlockSpec::Kind::layer:
      return layer(block, in, w, ops);
    case BlockSpec::Kind::head:
      return cross_entropy(ops, ops.norm(in.x, w[0], options_.eps), w[1], in.labels, in.weights);
  }
  ASSAY_CHECK(false, id_ + " has no such block");
}

Tensor Decoder::layer(const BlockSpec& block, const BlockInput& in, BlockWeights w,
                      Ops& ops) const {
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
  const Tensor normed = ops.norm(h, w[5], options_.eps);
  return add(h, mlp(block, in, normed, w.subspan(kAttentionWeights), ops));
}

Flops Decoder::flops_per_token(int64_t seq_len) const {
  double all = 0, embedding = 0;
  for (const ParameterSpec& p : parameters()) {
    const auto numel = static_cast<double>(whole(p.shape).numel()) * active_share(p);
    all += numel;
    if (p.role == ParameterRole::embedding && !size_.tied) embedding += numel;
  }
  const double scores = 6.0 * size_.layers * size_.heads * size_.head_dim * seq_len;  // causal half
  return {{"tt", 6 * (all - embedding) + 2 * scores},
          {"palm", 6 * all + 2 * scores},
          {"causal_half", 6 * (all - embedding) + scores}};
}

std::map<std::string, int64_t> Decoder::facts() const {
  return {{"heads", size_.heads},   {"kv_heads", size_.kv_heads},
          {"layers", size_.layers}, {"head_dim", size_.head_dim},
          {"hidden", size_.hidden}, {"ffn", size_.ffn},
          {"vocab", vocab_},        {"tied", size_.tied ? 1 : 0}};
}

}  // namespace assay::models
