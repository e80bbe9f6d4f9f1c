// cuda/statistics_kernels.h -- the kernels of statistics.cu as functions, on a GPU or wherever else they run.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "carnot/core/base/result.h"
#include "carnot/cuda/driver.h"
#include "carnot/cuda/nvrtc.h"
#include "carnot/cuda/statistics_parameters.h"

namespace carnot::cuda {

class StatisticsKernels {
 public:
  virtual ~StatisticsKernels() = default;

  virtual void forward(const StatisticsForward<float>& p) = 0;
  virtual void forward(const StatisticsForward<double>& p) = 0;
  virtual void backward(const StatisticsBackward<float, float>& p) = 0;
  virtual void backward(const StatisticsBackward<double, double>& p) = 0;
  virtual void backward(const StatisticsBackward<float, unsigned short>& p) = 0;  ///< rounded to bfloat16
};

/// The stream on which work for a device is to be queued, as the driver knows it.
using CurrentStream = std::function<void*(int device)>;

/// Compiles them for that GPU and loads them. Calls queue a kernel and return; they throw std::runtime_error where the
/// driver refuses it. The error says why this machine cannot.
Result<std::unique_ptr<StatisticsKernels>> statistics_on_gpu(int device, const Nvrtc& nvrtc, const CudaDriver& driver,
                                                             CurrentStream stream);

}  // namespace carnot::cuda
