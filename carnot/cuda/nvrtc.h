// cuda/nvrtc.h -- NVRTC, NVIDIA's compiler of CUDA C++ as a library, opened at run time.
//
// It comes with the CUDA toolkit and with the Python package nvidia-cuda-nvrtc, which CUDA builds of the torch wheel
// require. It compiles without a GPU.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/cuda/device_program.h"

namespace carnot::cuda {

class Nvrtc {
 public:
  /// NVRTC of CUDA 12 or 13: where CARNOT_NVRTC names a library, that one; else in one of `folders`, as the wheels of
  /// Python's site-packages (nvidia/cu13/lib and others below them), else where the system looks.
  static Result<Nvrtc> open(std::span<const std::string> site_packages);

  const std::string& library() const;
  /// "13.0"
  std::string version() const;
  /// The GPUs that it compiles for, ascending, as their compute capability times ten: 90 is sm_90.
  std::vector<int> architectures() const;

  /// Machine code for that architecture; for one that is newer than all it knows, code of the newest in the assembly
  /// language (PTX) that the driver compiles. An error has the compiler's messages.
  Result<std::string> compile(const DeviceProgram& program, int architecture) const;

 private:
  struct Functions;
  explicit Nvrtc(std::shared_ptr<const Functions> functions) : functions_(std::move(functions)) {}

  std::shared_ptr<const Functions> functions_;
};

}  // namespace carnot::cuda
