// The schedules whose stages go round the ranks (placement loop).
#include "core/schedule/generators.h"

#include <algorithm>

#include "core/schedule/row_builder.h"

namespace assay::generators {
namespace {

/// The stage of a rank's j-th forward or backward when chunks take turns of g microbatches.
struct Turns {
  const PipelineShape& shape;
  int64_t rank;
  int64_t chunk(int64_t j) const { return j / group_size(shape) % shape.chunks; }
  int64_t forward(int64_t j) const { return chunk(j) * shape.ranks + rank; }
  int64_t backward(int64_t j) const { return (shape.chunks - 1 - chunk(j)) * shape.ranks + rank; }
};

}  // namespace

int64_t group_size(const PipelineShape& shape) {
  return shape.microbatches / std::max<int64_t>(1, shape.microbatches / shape.ranks);
}

ActionList gpipe(const PipelineShape& shape, int64_t rank) {
  RowBuilder row;
  for (int64_t i = 0; i < shape.microbatches; ++i) row.forward(rank);
  for (int64_t i = 0; i < shape.microbatches; ++i) row.backward(rank);
  return row.take();
}

ActionList one_f_one_b(const PipelineShape& shape, int64_t rank) {
  const int64_t m = shape.microbatches;
  const int64_t warmup = std::min(shape.ranks - rank - 1, m);
  RowBuilder row;
  for (int64_t i = 0; i < warmup; ++i) row.forward(rank);
  for (int64_t i = 0; i < m - warmup; ++i) {
    row.forward(rank);
    row.backward(rank);
  }
  for (int64_t i = 0; i < warmup; ++i) row.backward(rank);
  return row.take();
}

ActionList interleaved_1f1b(const PipelineShape& shape, int64_t rank) {
  const int64_t total = shape.microbatches * shape.chunks;
  const int64_t warmup =
      std::min((shape.chunks - 1) * group_size(shape) + 2 * (shape.ranks - 1 - rank), total);
  const Turns turns{shape, rank};
  RowBuilder row;
  for (int64_t j = 0; j < warmup; ++j) row.forward(turns.forward(j));
  for (int64_t j = 0; j < total; ++j) {
    if (warmup + j < total) row.forward(turns.forward(warmup + j));
    row.backward(turns.backward(j));
  }
  return row.take();
}

ActionList looped_bfs(const PipelineShape& shape, int64_t rank) {
  ActionList list;
  for (int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
    const int64_t stage = chunk * shape.ranks + rank;
    for (int64_t i = 0; i < shape.microbatches; ++i) {
      list.push_back({stage, ActionKind::forward, i});
    }
  }
  for (int64_t chunk = shape.chunks - 1; chunk >= 0; --chunk) {
    const int64_t stage = chunk * shape.ranks + rank;
    for (int64_t i = shape.microbatches - 1; i >= 0; --i) {
      list.push_back({stage, ActionKind::backward, i});
    }
  }
  return list;
}

ActionList interleaved_zb(const PipelineShape& shape, int64_t rank) {
  const int64_t total = shape.microbatches * shape.chunks;
  const int64_t warmup =
      std::min((shape.chunks - 1) * group_size(shape) + shape.ranks - 1 - rank, total);
  const Turns turns{shape, rank};
  RowBuilder row;
  for (int64_t j = 0; j < warmup; ++j) row.forward(turns.forward(j));
  for (int64_t j = 0; j < total; ++j) {
    if (warmup + j < total) row.forward(turns.forward(warmup + j));
    row.backward_input(turns.backward(j));
    if (j >= rank) row.backward_weight();
  }
  while (row.weights_queued()) row.backward_weight();
  return row.take();
}

}  // namespace assay::generators
