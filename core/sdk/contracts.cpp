// Key functions and neutral defaults of the contracts in core/include/assay.
#include "assay/compile.h"
#include "assay/data.h"
#include "assay/memory.h"
#include "assay/model.h"
#include "assay/ops.h"
#include "assay/optimizer.h"
#include "assay/parallel.h"
#include "assay/precision.h"

namespace assay {

Ops::~Ops() = default;
bool Ops::masks_documents() const { return false; }
OpsLayer::~OpsLayer() = default;
Model::~Model() = default;
BlockRunner::~BlockRunner() = default;
GradientSync::~GradientSync() = default;
ParallelStrategy::~ParallelStrategy() = default;
MemoryPolicy::~MemoryPolicy() = default;
Precision::~Precision() = default;
CompileBackend::~CompileBackend() = default;
DataSource::~DataSource() = default;
Optimizer::~Optimizer() = default;

Tensor OpsLayer::embedding(const Tensor& anchor, const Tensor& ids, const Weight& table) {
  return next_->embedding(anchor, ids, table);
}
Tensor OpsLayer::norm(const Tensor& x, const Weight& scale, double eps) {
  return next_->norm(x, scale, eps);
}
Tensors OpsLayer::linear(const Tensor& x, std::span<const Weight> weights) {
  return next_->linear(x, weights);
}
Tensor OpsLayer::rope(const Tensor& x, const Positions& positions, const RopeSpec& spec) {
  return next_->rope(x, positions, spec);
}
AttentionPart OpsLayer::attention_part(const Tensor& q, const Tensor& k, const Tensor& v,
                                       const AttentionSpec& spec) {
  return next_->attention_part(q, k, v, spec);
}
AttentionGradients OpsLayer::attention_part_backward(const Tensor& dout, const Tensor& q,
                                                     const Tensor& k, const Tensor& v,
                                                     const AttentionPart& whole,
                                                     const AttentionSpec& spec) {
  return next_->attention_part_backward(dout, q, k, v, whole, spec);
}
bool OpsLayer::masks_documents() const { return next_->masks_documents(); }
Tensor OpsLayer::pointwise(Pointwise kind, std::span<const Tensor> inputs) {
  return next_->pointwise(kind, inputs);
}
CrossEntropyStats OpsLayer::ce_stats(const Tensor& hidden, const Weight& head,
                                     const Tensor& labels) {
  return next_->ce_stats(hidden, head, labels);
}
Routing OpsLayer::route(const Tensor& x, const Weight& router, const Tensor& bias,
                        const RouteSpec& spec) {
  return next_->route(x, router, bias, spec);
}
Dispatch OpsLayer::dispatch(const Tensor& x, const Tensor& experts, int64_t expert_count,
                            int64_t pad_rows) {
  return next_->dispatch(x, experts, expert_count, pad_rows);
}
Tensors OpsLayer::grouped_linear(const Tensor& x, std::span<const int64_t> expert_rows,
                                 std::span<const Weight> weights) {
  return next_->grouped_linear(x, expert_rows, weights);
}
Tensor OpsLayer::combine(const Tensor& y, const Dispatch& dispatch, const Tensor& gates) {
  return next_->combine(y, dispatch, gates);
}

void Model::prepare(const ModelRun&) {}
void Model::before_update(const StepHook&) {}
std::map<std::string, Tensor> Model::buffers() const { return {}; }

bool GradientSync::arms(int64_t microbatch, int64_t microbatches) const {
  return microbatch + 1 == microbatches;
}

Pipeline ParallelStrategy::pipeline(const std::vector<BlockSpec>&, int64_t, int64_t) const {
  return {};
}
void ParallelStrategy::place(ParameterPlacement&, const Mesh&) const {}
void ParallelStrategy::shard(ParameterPlacement&, const Mesh&) const {}
std::vector<int64_t> ParallelStrategy::tokens(int64_t, const Mesh&) const { return {}; }
int64_t ParallelStrategy::sequence_parts(const Mesh&) const { return 1; }
void ParallelStrategy::prepare(const RankContext&) {}
void ParallelStrategy::publish(const RankContext& context) {
  for (Parameter& p : context.parameters) {
    if (p.present && !p.master.is_same(p.weight)) p.weight.copy_(p.master);
  }
}
std::unique_ptr<Ops> ParallelStrategy::wrap_ops(std::unique_ptr<Ops> next, const RankContext&) {
  return next;
}
std::unique_ptr<BlockRunner> ParallelStrategy::wrap_block(std::unique_ptr<BlockRunner> next,
                                                          const RankContext&) {
  return next;
}
std::unique_ptr<GradientSync> ParallelStrategy::gradient_sync(const RankContext&) {
  return nullptr;
}
void ParallelStrategy::unshard(std::span<const BlockSpec>) {}
void ParallelStrategy::reshard(std::span<const BlockSpec>) {}
std::vector<std::string> ParallelStrategy::engagement() const { return {}; }

std::unique_ptr<Ops> Precision::wrap_ops(std::unique_ptr<Ops> next, const RankContext&) {
  return next;
}
std::unique_ptr<Ops> CompileBackend::wrap_ops(std::unique_ptr<Ops> next, const RankContext&) {
  return next;
}
std::unique_ptr<BlockRunner> CompileBackend::wrap_block(std::unique_ptr<BlockRunner> next,
                                                        const RankContext&) {
  return next;
}

std::vector<StateSlot> Optimizer::state_spec(const ParameterInfo&) const { return {}; }

}  // namespace assay
