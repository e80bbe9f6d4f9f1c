// nn/cuda_backend.h -- LibTorch's CUDA half, loaded only when a GPU is requested.
#pragma once

#include "carnot/base/result.h"

namespace carnot {

/// Loads libtorch_cuda.so next to the other libraries of LibTorch, whose kernels register themselves, and looks for
/// a device. Says what is missing: the library, one that it needs, or a GPU. Further calls cost nothing.
Status load_cuda_backend();

}  // namespace carnot
