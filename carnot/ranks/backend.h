// ranks/backend.h -- which of c10d's backends carries what ranks do together: Gloo, over the host's memory.
//
// Gradients and weights of other devices are copied to the host for it, bucket by bucket. NCCL
// (c10d::ProcessGroupNCCL) would take them where they are: LibTorch for the CPU does not contain it, it needs nccl.h,
// and the buffers of GradientExchange and ShardedOptimizer would have to lie on the device.
#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "carnot/core/base/result.h"

namespace carnot {

struct BackendPlace {
  std::string address{};  ///< at which the other ranks reach this one
  int rank = 0, size = 1;
  std::chrono::milliseconds connect_within{};
};

/// Connects this rank with all others. GLOO_SOCKET_IFNAME names the interface for it, as it does for PyTorch. The error
/// says why it could not.
Result<c10::intrusive_ptr<c10d::Backend>> make_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                       const BackendPlace& place);

}  // namespace carnot
