// nn/portable_statistics.h -- the passes of token_statistics with LibTorch's operators. Internal to the room.
#pragma once

#include "carnot/core/nn/statistics_passes.h"

namespace carnot {

void portable_statistics(const StatisticsInputs& inputs, StatisticsOutputs& out);
InputGradients portable_statistics_backward(const StatisticsInputs& inputs, const StatisticsOutputs& saved,
                                            const StatisticsGradients& gradients);

}  // namespace carnot
