// Generators: the list of one rank for each known schedule. The shape has been checked before.
#pragma once

#include "assay/pipeline.h"

namespace assay::generators {

/// All forwards, then all backwards. GPipe, Huang et al. 2018, arXiv:1811.06965.
ActionList gpipe(const PipelineShape& shape, int64_t rank);

/// One forward, one backward after a warm-up of min(p-r-1, m). PipeDream-Flush, Narayanan et al.
/// 2021, arXiv:2104.04473, section 2.2.1.
ActionList one_f_one_b(const PipelineShape& shape, int64_t rank);

/// 1F1B over v chunks per rank in groups of g microbatches; warm-up min((v-1)g + 2(p-1-r), mv).
/// Narayanan et al. 2021, arXiv:2104.04473, section 2.2.2.
ActionList interleaved_1f1b(const PipelineShape& shape, int64_t rank);

/// Each chunk's forwards for all microbatches, then each chunk's backwards. Lamy-Poirier 2022,
/// arXiv:2211.05953.
ActionList looped_bfs(const PipelineShape& shape, int64_t rank);

/// Interleaved with warm-up min((v-1)g + (p-1-r), mv) and I, W instead of B: W in the order of the
/// I's, one after each I from the (r+1)-th on. With v = 1 ZB-1P (ZB-H1), Qi et al. 2024,
/// arXiv:2401.10241.
ActionList interleaved_zb(const PipelineShape& shape, int64_t rank);

/// Two chunks per rank in a V; F = I = W leaves no idle time but the skew of the start. ZB-V, Qi et
/// al. 2024, arXiv:2401.10241, section 6. Written for max(2p-1, m) microbatches, of which those
/// from m on are dropped.
ActionList zbv(const PipelineShape& shape, int64_t rank);

/// ZB-V's placement with forward and backward of different microbatches overlapped. DualPipe cut in
/// half, DeepSeek-AI 2024, arXiv:2412.19437, and its public code.
ActionList dualpipev(const PipelineShape& shape, int64_t rank);

/// Microbatches per round of the interleaved schedules: m / max(1, m div p).
int64_t group_size(const PipelineShape& shape);

}  // namespace assay::generators
