// cuda/driver.h -- CUDA's driver, opened at run time: loads compiled device code and launches its kernels.
//
// Works in each device's primary context, which LibTorch uses too: pointers and streams of LibTorch's are valid here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot::cuda {

/// A kernel of a loaded program.
struct LoadedKernel {
  void* function = nullptr;
  void* context = nullptr;
};

class CudaDriver {
 public:
  /// The error says what is missing: the library, or a GPU.
  static Result<CudaDriver> open(const std::string& library = "libcuda.so.1");

  /// Compute capability times ten: 90 is sm_90.
  Result<int> architecture(int device) const;

  /// Loads code as Nvrtc::compile() makes it. It stays for good. The kernels in the order of `names`.
  Result<std::vector<LoadedKernel>> load(int device, const std::string& code,
                                         const std::vector<std::string>& names) const;

  /// Queues the kernel on a stream of its device; `parameter` is its only one, copied before this returns. Throws
  /// std::runtime_error where the driver refuses.
  void launch(const LoadedKernel& kernel, unsigned blocks, unsigned threads, void* stream, const void* parameter) const;

 private:
  struct Functions;
  explicit CudaDriver(std::shared_ptr<const Functions> functions) : functions_(std::move(functions)) {}

  std::shared_ptr<const Functions> functions_;
};

}  // namespace carnot::cuda
