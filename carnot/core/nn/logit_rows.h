// nn/logit_rows.h -- logits to sample from, with measurements taken while they were computed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "carnot/core/kernel/statistics/segments.h"

namespace carnot {

/// Rows of logits [B, V], of any floating type and device. If there are segments, the rows are float32 on the CPU,
/// divided by their temperatures, and segments [B, segments_of(V)] describe the divided ones.
struct LogitRows {
  at::Tensor logits_BV{};
  std::vector<kernel::SegmentStatistics<float>> segments{};
};

}  // namespace carnot
