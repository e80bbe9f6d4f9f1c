// cuda/statistics/device_statistics.h -- the passes of token_statistics by the device kernels of this annex.
#pragma once

#include <string>
#include <vector>

#include "carnot/core/nn/statistics_passes.h"
#include "carnot/cuda/statistics_kernels.h"

namespace carnot {

/// The kernels for tensors of a CUDA device, compiled on the first call. Null on other devices, and if NVRTC or the
/// driver cannot be used; a warning then gives the reason, once per device.
cuda::StatisticsKernels* device_statistics_kernels(at::Device device);

/// LibTorch computes logits strip by strip, in float32 for bfloat16 operands; one kernel reads them. The tensors must
/// be on the kernels' device.
void device_statistics(const StatisticsInputs& inputs, StatisticsOutputs& out, cuda::StatisticsKernels& kernels);

/// Computes the logits again. For bfloat16 operands, the logits' gradients are rounded to bfloat16 for the two products
/// that follow, whose sums are float32; the head's gradient stays float32.
InputGradients device_statistics_backward(const StatisticsInputs& inputs, const StatisticsOutputs& saved,
                                          const StatisticsGradients& gradients, cuda::StatisticsKernels& kernels);

/// The stream on which LibTorch queues work, for callers that launch kernels between its operators. REQUIRES: a loaded
/// backend.
Result<cuda::CurrentStream> current_cuda_stream();

/// The folder of Python packages that contains LibTorch and, next to it, CUDA's libraries; empty if LibTorch is in
/// none.
std::vector<std::string> site_packages_of_libtorch();

/// Gives token_statistics the kernels on every CUDA device.
void offer_cuda_statistics();

}  // namespace carnot
