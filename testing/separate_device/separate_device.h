// testing/separate_device/separate_device.h -- a LibTorch device whose memory is not the host's, without hardware.
//
// Its operators are those of the CPU. Like a GPU it refuses operands that are elsewhere (scalars aside), reading its
// memory through a pointer ends the process, and gradients are computed on its own thread. What runs on it keeps its
// tensors where they belong. It uses LibTorch's slot for external devices: at::kPrivateUse1.
#pragma once

#include <ATen/core/Tensor.h>

namespace carnot::testing {

/// The device, which exists from the program's start on.
at::Device separate_device();

}  // namespace carnot::testing
