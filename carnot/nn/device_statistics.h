// nn/device_statistics.h -- the passes of token_statistics with the device kernels of carnot/cuda. Internal to the
// room.
#pragma once

#include "carnot/cuda/statistics_kernels.h"
#include "carnot/nn/statistics_passes.h"

namespace carnot {

/// The kernels for tensors of a CUDA device, compiled at the first call. Null elsewhere, and where NVRTC or the driver
/// cannot be used; a warning then says why, once for each device.
cuda::StatisticsKernels* device_statistics_kernels(at::Device device);

/// Logits are computed by LibTorch strip by strip, in float32 for bfloat16 operands, and read by one kernel. The
/// tensors have to be where the kernels run.
void device_statistics(const StatisticsInputs& inputs, StatisticsOutputs& out, cuda::StatisticsKernels& kernels);

/// Logits are computed again. Of bfloat16 operands the logits' gradients are rounded to bfloat16 for the two products
/// that follow, whose sums are float32; the head's gradient stays float32.
InputGradients device_statistics_backward(const StatisticsInputs& inputs, const StatisticsOutputs& saved,
                                          const StatisticsGradients& gradients, cuda::StatisticsKernels& kernels);

}  // namespace carnot
