// nn/cuda_backend.h -- the CUDA part of LibTorch, loaded only when a GPU is requested.
#pragma once

#include <string>
#include <vector>

#include "carnot/base/result.h"
#include "carnot/cuda/statistics_kernels.h"

namespace carnot {

/// Loads libtorch_cuda.so, next to the other libraries of LibTorch, which registers its kernels, and looks for a
/// device. The error says what is missing: the library, one of its dependencies, or a GPU. Further calls cost nothing.
Status load_cuda_backend();

/// The stream on which LibTorch queues work, for callers that launch kernels between its operators. REQUIRES: a loaded
/// backend.
Result<cuda::CurrentStream> current_cuda_stream();

/// The folder of Python packages that contains LibTorch and, next to it, CUDA's libraries; empty if LibTorch is in
/// none.
std::vector<std::string> site_packages_of_libtorch();

}  // namespace carnot
