// nn/logit_segments.h -- products with a bfloat16 head whose logits are measured while they are in the cache. Internal
// to the room.
#pragma once

#include <cstdint>
#include <span>

#include "carnot/core/kernel/statistics/segments.h"
#include "carnot/core/nn/products.h"

namespace carnot {

/// What is measured for T rows of logits, each of which is first divided by its temperature.
struct SegmentMeasurement {
  std::span<const float> inverse_temperature_T{};
  float* logits_TV = nullptr;                              ///< null: the logits are not needed later
  std::span<kernel::SegmentStatistics<float>> segments{};  ///< [T, segments_of(V)]
  const std::int64_t* targets_T = nullptr;                 ///< null: no target's logit is needed
  float* target_logits_T = nullptr;
};

/// `head`: as B of hidden head^T.
void measure_segments(const MatrixRows<kernel::BFloat16>& hidden, const kernel::PackedBFloat16& head,
                      const SegmentMeasurement& wanted);

}  // namespace carnot
