#include "carnot/core/run/own_kernels.h"

#include <ATen/Version.h>

#include "carnot/core/nn/linear.h"
#include "carnot/core/train/model_bundle.h"

namespace carnot {

std::string own_kernels(const RunOptions& run) {
  return kernel_sets(tensor_options(run).dtype().toScalarType()) + " (LibTorch's: " + at::get_cpu_capability() + ")";
}

}  // namespace carnot
