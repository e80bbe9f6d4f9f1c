#include "carnot/core/nn/cuda_backend.h"

#include <ATen/Context.h>
#include <dlfcn.h>

#include <string>

namespace carnot {

namespace {

/// The error, or an empty string. The library is never closed, because operators point into it.
std::string load_library() {
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) != nullptr) return "";
  const char* reason = dlerror();
  return reason != nullptr ? reason : "libtorch_cuda.so does not load";
}

}  // namespace

Status load_cuda_backend() {
  static const std::string problem = load_library();
  if (!problem.empty()) return Error{"this LibTorch cannot use a GPU here: " + problem};
  if (!at::hasCUDA()) return Error{"LibTorch sees no CUDA device"};
  return Done{};
}

}  // namespace carnot
