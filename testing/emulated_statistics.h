// testing/emulated_statistics.h -- the statistics' device kernels, run on the CPU from the source that GPUs get.
#pragma once

#include <memory>

#include "carnot/cuda/statistics_kernels.h"
#include "testing/device_emulation.h"

namespace carnot::testing {

/// With blocks of 32 threads, so that even small rows take several rounds.
std::unique_ptr<cuda::StatisticsKernels> emulated_statistics(ThreadOrder order);

/// The forward kernel of float with as many threads as on a GPU.
void emulate_full_block(ThreadOrder order, const cuda::StatisticsForward<float>& p);

}  // namespace carnot::testing
