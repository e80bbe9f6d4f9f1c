// bench/gpu_cell.h -- a cell of gpu_bench: its settings, what it found, and time and memory on a device.
#pragma once

#include <ATen/Functions.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <functional>
#include <string>

#include "carnot/core/base/stopwatch.h"

namespace carnot {

struct Settings {
  at::Device device = at::kCUDA;
  bool small = false;
  double bytes_per_second = 0, flops = 0;  ///< 0: not measured, no limit

  at::TensorOptions options(at::ScalarType type) const { return at::TensorOptions().dtype(type).device(device); }
  int size(int full, int smallest) const { return small ? smallest : full; }
};

/// What a cell found.
struct Figure {
  double value = 0;
  std::string unit{};
  bool higher_is_better = true;
  double limit = 0;  ///< 0: none
  std::string note{};
};

struct Cell {
  std::string name{};
  std::function<Figure(const Settings&)> measure{};
};

/// Waits for the device.
inline void finish(const Settings& settings) { at::zeros({1}, settings.options(at::kFloat)).cpu(); }

inline double seconds_of(const Settings& settings, const std::function<void()>& work) {
  finish(settings);
  const Stopwatch watch;
  work();
  finish(settings);
  return watch.seconds();
}

inline double best_of_three(const Settings& settings, const std::function<void()>& work) {
  work();
  double best = 1e30;
  for (int round = 0; round < 3; ++round) best = std::min(best, seconds_of(settings, work));
  return best;
}

/// Of tensors; 0 on a CPU.
inline double peak_mebibytes(const Settings& settings) {
  if (!settings.device.is_cuda()) return 0;
  const auto stats = c10::getDeviceAllocator(c10::DeviceType::CUDA)->getDeviceStats(0);
  return static_cast<double>(stats.allocated_bytes[0].peak) / (1 << 20);
}

}  // namespace carnot
