// nn/cuda_backend.h -- LibTorch's CUDA half, loaded only when a GPU is requested.
#pragma once

#include <string>
#include <vector>

#include "carnot/base/result.h"
#include "carnot/cuda/statistics_kernels.h"

namespace carnot {

/// Loads libtorch_cuda.so next to the other libraries of LibTorch, whose kernels register themselves, and looks for
/// a device. Says what is missing: the library, one that it needs, or a GPU. Further calls cost nothing.
Status load_cuda_backend();

/// The stream on which LibTorch queues work, for those who launch kernels between its operators. REQUIRES: a loaded
/// backend.
Result<cuda::CurrentStream> current_cuda_stream();

/// The folder of Python packages that LibTorch is in, beside which CUDA's libraries lie; empty where it is in none.
std::vector<std::string> site_packages_of_libtorch();

}  // namespace carnot
