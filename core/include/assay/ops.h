// Ops: the vocabulary a model is written in. Virtual functions are primitives; a technique
// overrides what it changes, and composites are plain functions over the top of the stack.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "assay/api.h"
#include "assay/tensor.h"
#include "assay/weight.h"

namespace assay {

/// Rotary embedding, arXiv:2104.09864, with the frequency scaling of Llama 3.1 (recipes 1.1).
struct RopeSpec {
  int64_t head_dim = 0;
  double theta = 500000.0;
  bool llama_scaling = false;
  double factor = 8.0, low = 1.0, high = 4.0, original = 8192.0;
};

/// Positions of the tokens of x (B, S, ...): `ids` (B, S) int64, or begin .. begin + S - 1.
struct Positions {
  Tensor ids{};
  int64_t begin = 0;
};

/// Starts of the documents of each row, ascending, first 0; empty: one document per row.
struct Documents {
  std::vector<std::vector<int64_t>> starts{};
};

struct AttentionSpec {
  std::string kind = "softmax";
  int64_t head_dim = 0;
  double scale = 0.0;  ///< 1 / sqrt(head_dim)
  bool causal = true;
  std::shared_ptr<const Documents> documents{};  ///< null: no document mask
};

/// out (B, S, H * dh) in the dtype of q; lse (B, H, S), natural logarithm, statistics dtype.
struct AttentionPart {
  Tensor out{};
  Tensor lse{};
};

/// Shaped and typed like q, k and v.
struct AttentionGradients {
  Tensor dq{};
  Tensor dk{};
  Tensor dv{};
};

/// Per token, statistics dtype, shape (T): the largest logit (a constant for autograd), the sum of
/// exp(logit - max), the target's logit. Labels below 0 give target 0 and must be masked by the
/// caller.
struct CrossEntropyStats {
  Tensor max{};
  Tensor sum_exp{};
  Tensor target{};
};

/// How the router of a mixture of experts chooses (arXiv:2101.03961, arXiv:2401.06066).
struct RouteSpec {
  int64_t top_k = 1;
  bool sigmoid = false;        ///< score = sigmoid(logits); else softmax over the experts
  bool normalise = false;      ///< gates of a token sum to 1
  double scale = 1.0;          ///< of the gates
  int64_t groups = 1;          ///< experts in equal groups, of which
  int64_t limited_groups = 1;  ///< those with the largest sum of two scores take part
  bool force_balance = false;  ///< pair (token t, slot j) gets expert (t * k + j) mod E
};

/// What a router made of T tokens and E experts; statistics dtype.
struct Routing {
  Tensor logits{};   ///< (T, E)
  Tensor scores{};   ///< (T, E)
  Tensor experts{};  ///< (T, k) int64, by falling score plus bias, the lower id first among equals
  Tensor gates{};    ///< (T, k), of scores without bias
  Tensor counts{};   ///< (E) int64: tokens that chose each expert
};

/// Rows of tokens ordered by expert. Expert e's rows are those of its pairs (token, slot), in the
/// order (rank of the token, token, slot), and zeros up to a multiple of pad_rows: the bits of a
/// row of a product depend on small row counts, and so not on how many ranks share the experts.
struct Dispatch {
  Tensor rows{};                     ///< (R, D)
  std::vector<int64_t> expert_rows;  ///< padded rows of each expert of this rank, R in all
  Tensor place{};                    ///< (T, k) int64: the row of each pair

  /// Of a layer that moves rows between ranks: the order in which it sent the tokens' rows, and
  /// rows to and from each rank. `rows` and `place` are then those of the rows that came.
  std::shared_ptr<const Dispatch> sender{};
  std::vector<int64_t> sent{}, received{};
};

enum class Pointwise {
  swiglu,    ///< (gate, up) -> silu(gate) * up, arXiv:2002.05202
  residual,  ///< (x, y) -> x + y
};

/// The primitives. Shapes: B batch, S sequence (local), D hidden, V vocabulary (local), dh
/// head_dim. Threads: one stack per rank. Numerics: statistics in max(fp32, dtype).
class ASSAY_API Ops {
 public:
  virtual ~Ops();

  /// ids (B, S) int64, table (V, D) -> (B, S, D). `anchor`: empty tensor that requires grad;
  /// without it no autograd node exists and no backward hook of the first block runs.
  virtual Tensor embedding(const Tensor& anchor, const Tensor& ids, const Weight& table) = 0;

  /// RMSNorm, arXiv:1910.07467: scale * x / sqrt(mean(x^2) + eps) over the last dimension.
  virtual Tensor norm(const Tensor& x, const Weight& scale, double eps) = 0;

  /// y_i = x W_i^T for weights (out_i, in) that read one input together.
  virtual Tensors linear(const Tensor& x, std::span<const Weight> weights) = 0;

  /// x (B, S, heads * dh) -> the same, each head rotated; halves convention of Hugging Face Llama:
  /// y = x * cos + (-x[dh/2:], x[:dh/2]) * sin, computed in the statistics dtype.
  virtual Tensor rope(const Tensor& x, const Positions& positions, const RopeSpec& spec) = 0;

  /// q (B, S, H * dh), k and v (B, Sk, Hkv * dh), H a multiple of Hkv (GQA, arXiv:2305.13245).
  /// Causal: Sk >= S and the last query sees the last key (query i sees keys 0 .. i + Sk - S).
  /// No gradient flows through lse.
  virtual AttentionPart attention_part(const Tensor& q, const Tensor& k, const Tensor& v,
                                       const AttentionSpec& spec) = 0;
  /// The part of the gradients that these keys give, where the queries saw other keys as well:
  /// `whole` is out and lse over all of them, dout the gradient of whole.out. Parts over disjoint
  /// keys add up: P = exp(S - lse), dS = P * (dout v^T - rowsum(dout * out)), arXiv:2307.08691.
  /// Without autograd; for the backward of a primitive that merges parts.
  virtual AttentionGradients attention_part_backward(const Tensor& dout, const Tensor& q,
                                                     const Tensor& k, const Tensor& v,
                                                     const AttentionPart& whole,
                                                     const AttentionSpec& spec) = 0;
  /// True: attention_part() obeys spec.documents itself (a layer that holds a part of the sequence
  /// only); else attention() calls it once per document.
  virtual bool masks_documents() const;

  virtual Tensor pointwise(Pointwise kind, std::span<const Tensor> inputs) = 0;

  /// hidden (B, S, D), head (V, D), labels (B, S) int64.
  virtual CrossEntropyStats ce_stats(const Tensor& hidden, const Weight& head,
                                     const Tensor& labels) = 0;

  // Mixture of experts; T tokens, E experts, k of them per token.

  /// x (T, D), router (E, D); bias (E), added to the scores for the choice alone, or undefined.
  /// logits = x router^T in the statistics dtype. The router is no weight of linear().
  virtual Routing route(const Tensor& x, const Weight& router, const Tensor& bias,
                        const RouteSpec& spec) = 0;

  /// x (T, D), experts (T, k) int64 of 0 .. E - 1. Reads how many rows each expert gets (on meta:
  /// the same for all).
  virtual Dispatch dispatch(const Tensor& x, const Tensor& experts, int64_t expert_count,
                            int64_t pad_rows) = 0;

  /// y_i = x_e W_i[e]^T on the rows of each expert; x (R, in), weights (E, out_i, in). An expert
  /// without rows gets a gradient of exactly zero.
  virtual Tensors grouped_linear(const Tensor& x, std::span<const int64_t> expert_rows,
                                 std::span<const Weight> weights) = 0;

  /// y (R, D) of the rows of `dispatch` -> (T, D): sum over slots, from 0, of gate * row in the
  /// statistics dtype, then in the dtype of y. gates (T, k); undefined: all 1.
  virtual Tensor combine(const Tensor& y, const Dispatch& dispatch, const Tensor& gates) = 0;
};

/// Forwards everything to the layer below; a technique derives from it.
class ASSAY_API OpsLayer : public Ops {
 public:
  explicit OpsLayer(std::unique_ptr<Ops> next) : next_(std::move(next)) {}
  ~OpsLayer() override;

  Tensor embedding(const Tensor& anchor, const Tensor& ids, const Weight& table) override;
  Tensor norm(const Tensor& x, const Weight& scale, double eps) override;
  Tensors linear(const Tensor& x, std::span<const Weight> weights) override;
  Tensor rope(const Tensor& x, const Positions& positions, const RopeSpec& spec) override;
  AttentionPart attention_part(const Tensor& q, const Tensor& k, const Tensor& v,
                               const AttentionSpec& spec) override;
  AttentionGradients attention_part_backward(const Tensor& dout, const Tensor& q, const Tensor& k,
                                             const Tensor& v, const AttentionPart& whole,
                                             const AttentionSpec& spec) override;
  bool masks_documents() const override;
  Tensor pointwise(Pointwise kind, std::span<const Tensor> inputs) override;
  CrossEntropyStats ce_stats(const Tensor& hidden, const Weight& head,
                             const Tensor& labels) override;
  Routing route(const Tensor& x, const Weight& router, const Tensor& bias,
                const RouteSpec& spec) override;
  Dispatch dispatch(const Tensor& x, const Tensor& experts, int64_t expert_count,
                    int64_t pad_rows) override;
  Tensors grouped_linear(const Tensor& x, std::span<const int64_t> expert_rows,
                         std::span<const Weight> weights) override;
  Tensor combine(const Tensor& y, const Dispatch& dispatch, const Tensor& gates) override;

 protected:
  Ops& next() { return *next_; }

 private:
  std::unique_ptr<Ops> next_;
};

/// The LibTorch implementation at the bottom of every stack (core/train/eager_ops.cpp).
ASSAY_API std::unique_ptr<Ops> make_eager_ops();

// Composites: they see the whole stack, so no layer is bypassed.

/// attention_part's output; documents of a row are attended separately.
ASSAY_API Tensor attention(Ops& ops, const Tensor& q, const Tensor& k, const Tensor& v,
                           const AttentionSpec& spec);

/// Adds in place what the same queries got from other keys, without autograd: w = sigmoid(part.lse
/// - into.lse), out = (1 - w) out + w part.out, lse = ln(exp(lse) + exp(part.lse)). `into` is in
/// the statistics dtype and may be views; an lse of -inf there means that nothing has been seen
/// yet.
ASSAY_API void merge_attention(const AttentionPart& into, const AttentionPart& part);

/// w2(silu(w1 x) * (w3 x)); weights in the order w1 (gate), w3 (up), w2 (down).
ASSAY_API Tensor swiglu_mlp(Ops& ops, const Tensor& x, std::span<const Weight> weights);

/// The chosen experts, each a swiglu_mlp(), on x (B, S, D) routed as (B * S, D): sum over slots of
/// gate * expert(x). Weights (E, out, in) in the order w1 (gate), w3 (up), w2 (down).
ASSAY_API Tensor moe(Ops& ops, const Tensor& x, const Routing& routing,
                     std::span<const Weight> weights, int64_t pad_rows);

/// Sum over valid tokens (label >= 0) of weight * (ln sum_exp + max - target), scalar;
/// token_weights (B, S) may be undefined (all 1). Dividing by the global sum of weights is the
/// trainer's.
ASSAY_API Tensor cross_entropy(Ops& ops, const Tensor& hidden, const Weight& head,
                               const Tensor& labels, const Tensor& token_weights);

}  // namespace assay
