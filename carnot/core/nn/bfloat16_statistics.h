// nn/bfloat16_statistics.h -- both passes of token_statistics for bfloat16 hidden states and weights. Internal to the
// room.
#pragma once

#include "carnot/core/nn/statistics_passes.h"

namespace carnot {

/// Works on segments of the vocabulary (kernel/statistics/segments.h), with the same bits as the engine's measurements.
/// If the clamped entropy is computed, logits of a strip of rows exist at a time, otherwise of a block.
void bfloat16_statistics(const StatisticsInputs& inputs, StatisticsOutputs& out);

/// Processes the vocabulary in strips of columns, each over all tokens: the head is packed strip by strip (for the
/// logits, only if it is not kept packed) and its gradient (float32) is written once. Logits have the bits of the
/// forward pass; their gradients are float32, rounded to bfloat16 for the two products that follow, whose sums are
/// float32.
InputGradients bfloat16_statistics_backward(const StatisticsInputs& inputs, const StatisticsOutputs& saved,
                                            const StatisticsGradients& gradients);

}  // namespace carnot
