// kernel/statistics/segments.h -- logsumexp and entropy of a row of logits, combined from those of its segments.
//
// A product measures a segment while it is in the cache, so that the row is not read from memory again. Segment
// boundaries depend only on the column: the bits are the same for any number of rows and threads.
#pragma once

#include <cstdint>
#include <span>

#include "carnot/core/kernel/dispatch.h"

namespace carnot::kernel {

/// Columns of a segment; the last one of a row can have fewer.
inline constexpr std::int64_t kSegment = 512;

inline std::int64_t segments_of(std::int64_t columns) { return (columns + kSegment - 1) / kSegment; }

struct RowStatistics {
  float logsumexp = 0;
  float entropy = 0;
};

/// Combines the segments of a row, added in their order, in double.
RowStatistics statistics_of(std::span<const SegmentStatistics<float>> segments);

}  // namespace carnot::kernel
