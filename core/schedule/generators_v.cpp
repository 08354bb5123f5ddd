// The schedules with two stages per rank in a V: a = r on the way down, b = 2p-1-r on the way up.
#include <algorithm>

#include "core/schedule/generators.h"
#include "core/schedule/row_builder.h"

namespace assay::generators {

ActionList zbv(const PipelineShape& shape, int64_t rank) {
  const int64_t p = shape.ranks, a = rank, b = 2 * p - 1 - rank;
  const int64_t m = std::max(2 * p - 1, shape.microbatches);
  RowBuilder row;
  for (int64_t i = 0; i < 2 * (p - rank) - 1; ++i) row.forward(a);
  for (int64_t i = 0; i < rank; ++i) {
    row.forward(b);
    row.forward(a);
  }
  for (int64_t i = 0; i < p - rank; ++i) {
    row.forward(b);
    row.backward_input(b);
    row.backward_weight(b);
  }
  while (row.forwards(b) < row.forwards(a) || row.forwards(a) < m) {
    if (row.forwards(a) < m) row.forward(a);
    row.backward_input(a);
    row.backward_weight(a);
    row.forward(b);
    row.backward_input(b);
    row.backward_weight(b);
  }
  for (int64_t i = 0; i < rank; ++i) {
    row.backward_input(a);
    row.backward_input(b);
  }
  for (int64_t i = 0; i < p - rank; ++i) {
    row.backward_input(a);
    row.backward_weight(a);
  }
  for (int64_t i = 0; i < rank; ++i) row.backward_weight(b);
  while (row.weights_queued()) row.backward_weight();
  ActionList list = row.take();
  std::erase_if(list, [&](const Action& x) { return x.microbatch >= shape.microbatches; });
  return list;
}

ActionList dualpipev(const PipelineShape& shape, int64_t rank) {
  const int64_t p = shape.ranks, a = rank, b = 2 * p - 1 - rank;
  const int64_t above = p - rank - 1;  // ranks between this one and the point of the V
  const int64_t pairs = rank + 1;
  RowBuilder row;
  for (int64_t i = 0; i < 2 * above; ++i) row.forward(a);
  for (int64_t i = 0; i < pairs; ++i) {
    row.forward(a);
    row.forward(b);
  }
  for (int64_t i = 0; i < above; ++i) {
    row.backward_input(b);
    row.backward_weight();
    row.forward(b);
  }
  for (int64_t i = 0; i < shape.microbatches - 2 * p + rank + 1; ++i) {
    if (i == 0 && rank == p - 1) {  // apart, for a smaller bubble
      row.forward(a);
      row.backward(b);
    } else {
      row.overlap(a, b);
    }
    row.overlap(b, a);
  }
  for (int64_t i = 0; i < above; ++i) {
    row.backward(b);
    row.overlap(b, a);
  }
  // From the middle on W waits, to fill the end of the step.
  for (int64_t i = 0; i < pairs; ++i) {
    const bool odd = rank % 2 == 1;
    row.backward(b, odd ? i >= pairs / 2 : i > pairs / 2);
    row.backward(a, i >= pairs / 2);
  }
  for (int64_t i = 0; i < above; ++i) {
    row.backward_weight();
    row.backward_input(a);
  }
  for (int64_t i = 0; i < pairs; ++i) row.backward_weight();
  return row.take();
}

}  // namespace assay::generators
