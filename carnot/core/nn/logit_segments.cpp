#include "carnot/core/nn/logit_segments.h"

#include "carnot/core/base/check.h"
#include "carnot/core/kernel/dispatch.h"

namespace carnot {

void measure_segments(const MatrixRows<kernel::BFloat16>& hidden, const kernel::PackedBFloat16& head,
                      const SegmentMeasurement& wanted) {
  const std::int64_t vocabulary = head.columns(), segments = kernel::segments_of(vocabulary);
  CARNOT_CHECK_EQ(static_cast<std::int64_t>(wanted.inverse_temperature_T.size()), hidden.count);
  CARNOT_CHECK_EQ(static_cast<std::int64_t>(wanted.segments.size()), hidden.count * segments);
  const auto& kernels = kernel::kernel_table<float>();
  const auto measure = [&](const kernel::ProductBlock& block) {
    for (std::int64_t i = 0; i < block.rows; ++i) {
      const std::int64_t t = block.row + i;
      float* logits = block.sums + i * block.row_stride;
      kernels.segment_statistics(
          block.columns, wanted.inverse_temperature_T[static_cast<std::size_t>(t)], logits,
          &wanted.segments[static_cast<std::size_t>(t * segments + block.column / kernel::kSegment)]);
      if (wanted.targets_T == nullptr) continue;
      const std::int64_t target = wanted.targets_T[t] - block.column;
      if (target >= 0 && target < block.columns) wanted.target_logits_T[t] = logits[target];
    }
  };
  kernel::gemm_by_blocks(kernel::bfloat16_kernels(),
                         {.data = hidden.data, .rows = hidden.count, .row_stride = hidden.stride}, head,
                         kernel::kSegment, wanted.logits_TV, vocabulary, measure);
}

}  // namespace carnot
