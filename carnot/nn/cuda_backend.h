// nn/cuda_backend.h -- LibTorch's CUDA half, loaded when somebody asks for a GPU.
#pragma once

#include "carnot/base/result.h"

namespace carnot {

/// Loads libtorch_cuda.so beside the other libraries of LibTorch, whose kernels then register themselves, and looks for
/// a device. Says what is missing: the library, one that it needs, or a GPU. Further calls cost nothing.
Status load_cuda_backend();

}  // namespace carnot
