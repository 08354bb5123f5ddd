// Model: the contract of kind `model`. Written once, as single-device code against Ops.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "assay/kind.h"
#include "assay/ops.h"
#include "assay/parameter.h"

namespace assay {

/// A cut point of the model: pipeline stages and fsdp units begin here, recompute wraps one.
struct BlockSpec {
  enum class Kind { embedding, layer, head };
  Kind kind = Kind::layer;
  std::string name{};          ///< "embedding", "layers.3", "head"
  int64_t layer = -1;          ///< index among the layers, -1 for the others
  std::vector<int> weights{};  ///< indices into parameters(), in the order of use
};

struct BlockInput {
  Tensor x{};        ///< (B, S, D); the first block's is empty and requires grad (the anchor)
  Tensor ids{};      ///< (B, S) int64, read by the embedding
  Tensor labels{};   ///< (B, S) int64, already shifted; below 0: ignored
  Tensor weights{};  ///< (B, S) token weights, undefined: all 1
  Positions positions{};
  std::shared_ptr<const Documents> documents{};
  int64_t microbatch = -1;  ///< of the step; a recomputed forward sees it again; -1: no training
};

using BlockWeights = std::span<const Weight>;

/// FLOPs per token by formula id (docs/metrics.md): "tt", "palm", "causal_half".
using Flops = std::map<std::string, double>;

/// What a model needs to know of its surroundings.
struct ModelContext {
  int64_t data_vocabulary = 0;  ///< of the data source; 0: unknown
};

/// What a run tells a model before its first forward.
struct ModelRun {
  const std::vector<BlockSpec>& blocks;  ///< that run on this rank
  int64_t microbatches = 1;              ///< of a step
  int64_t token_ranks = 1;               ///< ranks that hold other tokens of these blocks
  at::Device device = at::kCPU;
};

/// What a model may do once per step besides forward and backward.
struct StepHook {
  std::function<void(Tensor&)> sum;        ///< over the token ranks, in place; phase control
  std::map<std::string, double>& metrics;  ///< recorded with the step; pipeline ranks' are added up
};

/// A decoder-only language model.
///
/// Called:    bind() once after construction, prepare() once while assembling, then the const
///            functions and before_update() from one thread per rank.
/// Names:     Hugging Face Llama names, so that export and import are renames only.
/// Numerics:  forward never branches on tensor values, ranks, dtypes or degrees; it never computes
///            with a head count (rope and attention take heads * head_dim).
class ASSAY_API Model {
 public:
  static constexpr Kind kind = Kind::model;
  virtual ~Model();

  /// Throws Error (R-VOCAB) if the model cannot serve the data's vocabulary.
  virtual void bind(const ModelContext& context) = 0;

  virtual std::vector<ParameterSpec> parameters() const = 0;  ///< global shapes, in forward order
  virtual std::vector<BlockSpec> blocks() const = 0;          ///< embedding, layers, head

  /// A layer gives (B, S, D); the head gives the loss sum of cross_entropy().
  virtual Tensor forward(const BlockSpec& block, const BlockInput& input, BlockWeights weights,
                         Ops& ops) const = 0;

  /// State that no gradient moves (the bias of a balanced router), kept by the model.
  virtual void prepare(const ModelRun& run);
  /// Called in every step on every rank, before the optimizer. What forward counted is found by
  /// (block, microbatch), so that recomputing it counts nothing twice.
  virtual void before_update(const StepHook& hook);
  /// That state by name, as a checkpoint saves it and writes it in place: of the blocks on this
  /// rank; the same on every rank that runs them.
  virtual std::map<std::string, Tensor> buffers() const;

  virtual Flops flops_per_token(int64_t seq_len) const = 0;
  virtual int64_t vocabulary() const = 0;
  virtual int64_t sequence_length() const = 0;

  /// Plan-time facts beyond parameters and blocks: heads, kv_heads, layers, head_dim, hidden, ffn.
  virtual std::map<std::string, int64_t> facts() const = 0;
};

/// Runs one block; techniques at the block seam wrap it.
class ASSAY_API BlockRunner {
 public:
  virtual ~BlockRunner();
  virtual Tensor run(const BlockSpec& block, const BlockInput& input) = 0;
};

}  // namespace assay
