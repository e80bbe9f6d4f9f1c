// nn/statistics_passes.h -- data that the forward and backward passes of token_statistics share, and how a
// device brings its own passes.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>

#include "carnot/core/nn/token_statistics.h"

namespace carnot {

struct StatisticsInputs {
  at::Tensor hidden_TH, head_VH, targets_T;
  double temperature = 1;
  std::int64_t removed = 0;         ///< entries that the clamped entropy leaves out; 0: not computed
  PackedWeights* packed = nullptr;  ///< as in StatisticsOptions

  std::int64_t tokens() const { return hidden_TH.size(0); }
  /// Rows of a strip: about four million logits at a time, sixteen million for bfloat16 weights, which are read again
  /// for every strip, and sixteen times as many on a GPU. Depends only on vocabulary, type and device.
  std::int64_t strip_rows() const;
};

/// Calls body(first, rows) for every strip.
template <class Body>
void for_strips(const StatisticsInputs& inputs, Body body) {
  const std::int64_t strip = inputs.strip_rows();
  for (std::int64_t first = 0; first < inputs.tokens(); first += strip)
    body(first, std::min(strip, inputs.tokens() - first));
}

/// The statistics. With the clamped entropy, also what backward needs for it: the logsumexp of the kept entries and
/// each token's cut (kernel::Cut).
struct StatisticsOutputs {
  TokenStatistics statistics{};
  at::Tensor kept_logsumexp_T{}, threshold_T{}, tie_limit_T{};
};

/// With respect to each output.
struct StatisticsGradients {
  at::Tensor logprob_T, entropy_T, logsumexp_T, clamped_entropy_T;
  bool of_head = true;  ///< false: the head is frozen, nothing is saved for it
};

struct InputGradients {
  at::Tensor hidden_TH, head_VH;  ///< head_VH is undefined if not requested
};

/// The passes by kernels of a device.
class DevicePasses {
 public:
  virtual ~DevicePasses() = default;
  virtual void forward(const StatisticsInputs& inputs, StatisticsOutputs& out) = 0;
  virtual InputGradients backward(const StatisticsInputs& inputs, const StatisticsOutputs& saved,
                                  const StatisticsGradients& gradients) = 0;
};

/// Those of a device; null if it has none.
using DevicePassesOf = DevicePasses* (*)(at::Device device);

/// Sets where token_statistics finds the passes of a device, once, when a program starts.
void offer_device_passes(DevicePassesOf passes_of);

}  // namespace carnot
