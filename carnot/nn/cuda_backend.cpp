#include "carnot/nn/cuda_backend.h"

#include <ATen/Context.h>
#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <stdexcept>
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

Result<cuda::CurrentStream> current_cuda_stream() {
  // From LibTorch's C interface (torch/csrc/inductor/aoti_torch/c/shim.h), which is stable between versions.
  using Function = std::int32_t(std::int32_t device, void** stream);
  constexpr const char* kName = "aoti_torch_get_current_cuda_stream";
  auto* function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, kName));
  if (function == nullptr) return Error{std::string("this LibTorch lacks ") + kName};
  return cuda::CurrentStream([function](int device) {
    void* stream = nullptr;
    if (function(device, &stream) != 0) throw std::runtime_error("LibTorch names no stream for the GPU");
    return stream;
  });
}

std::vector<std::string> site_packages_of_libtorch() {
  void* loaded = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
  link_map* map = nullptr;
  if (loaded == nullptr || dlinfo(loaded, RTLD_DI_LINKMAP, &map) != 0) return {};
  // site-packages/torch/lib/libtorch_cpu.so
  const std::filesystem::path packages = std::filesystem::path(map->l_name).parent_path().parent_path().parent_path();
  dlclose(loaded);
  return packages.empty() ? std::vector<std::string>() : std::vector{packages.string()};
}

}  // namespace carnot
