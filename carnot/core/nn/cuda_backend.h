// nn/cuda_backend.h -- the CUDA part of LibTorch, loaded only when a GPU is requested.
#pragma once

#include "carnot/core/base/result.h"

namespace carnot {

/// Loads libtorch_cuda.so, next to the other libraries of LibTorch, which registers its kernels, and looks for a
/// device. The error says what is missing: the library, one of its dependencies, or a GPU. Further calls cost nothing.
Status load_cuda_backend();

}  // namespace carnot
