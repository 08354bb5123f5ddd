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

/// Sum over valid tokens (label >= 0) of weight * (ln sum_exp + max - target), scalar;
/// token_weights (B, S) may be undefined (all 1). Dividing by the global sum of weights is the
/// trainer's.
ASSAY_API Tensor cross_entropy(Ops& ops, const Tensor& hidden, const Weight& head,
                               const Tensor& labels, const Tensor& token_weights);

}  // namespace assay
