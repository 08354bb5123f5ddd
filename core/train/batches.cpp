// Reads rows and stacks them into microbatches.
#include "core/train/batches.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "assay/error.h"
#include "core/train/counter_random.h"

namespace assay::train {
namespace {

Microbatch stack(const std::vector<Sample>& samples, int64_t seq_len, at::Device device) {
  const auto count = static_cast<int64_t>(samples.size());
  Microbatch micro{
      at::empty({count, seq_len}, at::kLong), at::empty({count, seq_len}, at::kLong), {}};
  auto documents = std::make_shared<Documents>();
  for (int64_t b = 0; b < count; ++b) {
    const Sample& sample = samples[static_cast<size_t>(b)];
    std::copy_n(sample.tokens.begin(), seq_len,
                micro.ids.mutable_data_ptr<int64_t>() + b * seq_len);
    std::copy_n(sample.labels.begin(), seq_len,
                micro.labels.mutable_data_ptr<int64_t>() + b * seq_len);
    documents->starts.push_back(sample.document_starts);
  }
  micro.documents = std::move(documents);
  micro.ids = micro.ids.to(device);
  micro.labels = micro.labels.to(device);
  return micro;
}

}  // namespace

Batches::Batches(std::shared_ptr<const DataSource> source, BatchShape shape, const Mesh& mesh,
                 uint64_t seed, at::Device device)
    : source_(std::move(source)),
      shape_(shape),
      ranks_(mesh.size(MeshGroup::batch)),
      rank_(mesh.index(MeshGroup::batch)),
      train_rows_(source_->rows(Split::train, shape.seq_len)),
      validation_rows_(source_->rows(Split::validation, shape.seq_len)),
      seed_(seed),
      device_(device) {
  if (shape_.global_batch % (shape_.micro_batch * ranks_) != 0) {
    throw Error("train.global_batch " + std::to_string(shape_.global_batch) +
                " is not a multiple of train.micro_batch " + std::to_string(shape_.micro_batch) +
                " x " + std::to_string(ranks_) + " data-parallel ranks");
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

Batch Batches::train(int64_t step) const {
  std::vector<int64_t> rows;
  for (int64_t j = rank_; j < shape_.global_batch; j += ranks_) {
    rows.push_back(train_row(step * shape_.global_batch + j));
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
    batch.label_bytes += samples.back().label_bytes;
    batch.valid_tokens += std::count_if(samples.back().labels.begin(), samples.back().labels.end(),
                                        [](int64_t label) { return label >= 0; });
    if (static_cast<int64_t>(samples.size()) == shape_.micro_batch) {
      batch.microbatches.push_back(stack(samples, shape_.seq_len, device_));
      samples.clear();
    }
  }
  return batch;
}

}  // namespace assay::train
