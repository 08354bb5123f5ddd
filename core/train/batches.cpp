// Reads rows and stacks them into microbatches.
#include "core/train/batches.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <utility>

#include "assay/error.h"
#include "core/train/counter_random.h"

namespace assay::train {

Batches::Batches(std::shared_ptr<const DataSource> source, BatchShape shape, const Mesh& mesh,
                 std::vector<int64_t> tokens, uint64_t seed, at::Device device)
    : source_(std::move(source)),
      shape_(shape),
      ranks_(mesh.size(MeshGroup::batch)),
      rank_(mesh.index(MeshGroup::batch)),
      train_rows_(source_->rows(Split::train, shape.seq_len)),
      validation_rows_(source_->rows(Split::validation, shape.seq_len)),
      tokens_(std::move(tokens)),
      counts_bytes_(mesh.coordinate(MeshDim::cp) == 0),
      seed_(seed),
      device_(device) {
  if (shape_.global_batch % (shape_.micro_batch * ranks_) != 0) {
    throw Error("train.global_batch " + std::to_string(shape_.global_batch) +
                " is not a multiple of train.micro_batch " + std::to_string(shape_.micro_batch) +
                " x " + std::to_string(ranks_) + " data-parallel ranks");
  }
  if (!tokens_.empty()) {
    const Tensor row = at::tensor(tokens_).unsqueeze(0);
    positions_ = row.expand({shape_.micro_batch, -1}).contiguous().to(device_);
  }
}

int64_t Batches::microbatches() const {
  return shape_.global_batch / (shape_.micro_batch * ranks_);
}

int64_t Batches::validation_batches() const { return validation_rows_ / shape_.global_batch; }

int64_t Batches::train_row(int64_t sample) const {
  const auto rows = static_cast<uint64_t>(train_rows_);
  const uint64_t epoch = static_cast<uint64_t>(sample) / rows;
  const Permutation permutation(rows, stream_key(seed_, "data.epoch." + std::to_string(epoch)));
  return static_cast<int64_t>(permutation(static_cast<uint64_t>(sample) % rows));
}

int64_t Batches::place(int64_t step, int64_t j) const {
  if (shape_.perturbation == 0) return j;
  const std::string stream =
      "perturbation." + std::to_string(shape_.perturbation) + "." + std::to_string(step);
  const Permutation order(static_cast<uint64_t>(shape_.global_batch), stream_key(seed_, stream));
  return static_cast<int64_t>(order(static_cast<uint64_t>(j)));
}

Batch Batches::train(int64_t step) const {
  std::vector<int64_t> rows;
  for (int64_t j = rank_; j < shape_.global_batch; j += ranks_) {
    rows.push_back(train_row(step * shape_.global_batch + place(step, j)));
  }
  return read(Split::train, rows);
}

Batch Batches::validation(int64_t index) const {
  std::vector<int64_t> rows;
  for (int64_t j = rank_; j < shape_.global_batch; j += ranks_) {
    rows.push_back(index * shape_.global_batch + j);
  }
  return read(Split::validation, rows);
}

Batch Batches::read(Split split, const std::vector<int64_t>& rows) const {
  Batch batch;
  std::vector<Sample> samples;
  for (const int64_t row : rows) {
    samples.push_back(source_->sample(split, row, shape_.seq_len));
    if (counts_bytes_) batch.label_bytes += samples.back().label_bytes;
    batch.valid_tokens += valid_tokens(samples.back());
    if (static_cast<int64_t>(samples.size()) == shape_.micro_batch) {
      batch.microbatches.push_back(stack(samples));
      samples.clear();
    }
  }
  return batch;
}

int64_t Batches::valid_tokens(const Sample& sample) const {
  const auto& labels = sample.labels;
  if (tokens_.empty()) return std::ranges::count_if(labels, [](int64_t l) { return l >= 0; });
  return std::ranges::count_if(tokens_,
                               [&](int64_t t) { return labels[static_cast<size_t>(t)] >= 0; });
}

Microbatch Batches::stack(const std::vector<Sample>& samples) const {
  const auto count = static_cast<int64_t>(samples.size());
  Tensor ids = at::empty({count, shape_.seq_len}, at::kLong);
  Tensor labels = at::empty_like(ids);
  auto documents = std::make_shared<Documents>();
  for (int64_t b = 0; b < count; ++b) {
    const Sample& sample = samples[static_cast<size_t>(b)];
    const int64_t offset = b * shape_.seq_len;
    std::copy_n(sample.tokens.begin(), shape_.seq_len, ids.mutable_data_ptr<int64_t>() + offset);
    std::copy_n(sample.labels.begin(), shape_.seq_len, labels.mutable_data_ptr<int64_t>() + offset);
    documents->starts.push_back(sample.document_starts);
  }
  Microbatch micro;
  if (!tokens_.empty()) {
    const Tensor places = at::tensor(tokens_);
    ids = ids.index_select(1, places);
    labels = labels.index_select(1, places);
    micro.positions.ids = positions_;
  }
  micro.ids = ids.to(device_);
  micro.labels = labels.to(device_);
  micro.documents = std::move(documents);
  return micro;
}

}  // namespace assay::train
