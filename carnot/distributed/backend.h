// distributed/backend.h -- which of c10d's backends carries what ranks do together: chosen here, by device.
//
// Gloo carries tensors of the CPU. GPUs would have NCCL (c10d::ProcessGroupNCCL), which LibTorch for the CPU does not
// contain: it takes the same store, needs nccl.h, and its tensors lie on the device, so that the buffers of
// GradientExchange and ShardedAdamW would have to.
#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "carnot/base/result.h"

namespace carnot {

struct BackendPlace {
  std::string device = "cpu";  ///< as RunOptions has it
  std::string address{};       ///< at which the other ranks reach this one
  int rank = 0, size = 1;
  std::chrono::milliseconds connect_within{};
};

/// Whether there is a backend for ranks that compute there. The error says what is missing.
Status check_device_of_ranks(const std::string& device);

/// Connects this rank with all others. GLOO_SOCKET_IFNAME names the interface for it, as it does for PyTorch. The error
/// says why it could not.
Result<c10::intrusive_ptr<c10d::Backend>> make_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                       const BackendPlace& place);

}  // namespace carnot
