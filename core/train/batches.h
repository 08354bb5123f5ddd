// Batches: which rows of the corpus a rank reads in each step, the same for every layout.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "assay/api.h"
#include "assay/data.h"
#include "assay/mesh.h"
#include "assay/model.h"

namespace assay::train {

struct BatchShape {
  int64_t global_batch = 1;  ///< sequences per optimizer step, over all ranks
  int64_t micro_batch = 1;   ///< sequences per rank and forward
  int64_t seq_len = 1;
  int64_t perturbation = 0;  ///< above 0: the same rows a step, in another order for each number
};

struct Microbatch {
  Tensor ids{};     ///< (B, S) int64
  Tensor labels{};  ///< (B, S) int64
  Positions positions{};
  std::shared_ptr<const Documents> documents{};
};

/// The rows one rank reads in one step; under context parallelism its tokens of them.
struct Batch {
  std::vector<Microbatch> microbatches{};
  int64_t valid_tokens = 0;  ///< of this rank: labels that are not ignored
  int64_t label_bytes = 0;
};

/// Sample p of the run is row permutation(p mod rows) of epoch p / rows; a step takes the next
/// global_batch samples; sample j of a step goes to batch rank j mod ranks (recipes 7.3).
class ASSAY_API Batches {
 public:
  /// `tokens`: places in a sequence that this rank holds, in its order; empty: all. Labels are
  /// shifted before, positions and labels move along, document starts stay those of the whole row.
  Batches(std::shared_ptr<const DataSource> source, BatchShape shape, const Mesh& mesh,
          std::vector<int64_t> tokens, uint64_t seed, at::Device device);

  Batch train(int64_t step) const;
  /// Rows of the validation split in corpus order; batch `index` of an evaluation.
  Batch validation(int64_t index) const;
  int64_t validation_batches() const;  ///< that the split can fill
  int64_t microbatches() const;
  int64_t train_rows() const { return train_rows_; }

 private:
  int64_t train_row(int64_t sample) const;
  int64_t place(int64_t step, int64_t j) const;  ///< of the step's sample j, perturbed
  Batch read(Split split, const std::vector<int64_t>& rows) const;
  Microbatch stack(const std::vector<Sample>& samples) const;
  int64_t valid_tokens(const Sample& sample) const;

  std::shared_ptr<const DataSource> source_;
  BatchShape shape_;
  int64_t ranks_, rank_, train_rows_, validation_rows_;
  std::vector<int64_t> tokens_;
  Tensor positions_;   ///< (micro_batch, S) of tokens_; one tensor for all microbatches
  bool counts_bytes_;  ///< of the ranks that share a row, one
  uint64_t seed_;
  at::Device device_;
};

}  // namespace assay::train
