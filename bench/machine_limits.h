// bench/machine_limits.h -- the best that a machine can do: reading from memory, or multiplying with all operands in
// the cache. Measured in the same run as the figures that are compared with it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "carnot/core/base/aligned_memory.h"
#include "carnot/core/base/random.h"
#include "carnot/core/base/stopwatch.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/kernel/gemm/bfloat16_gemm.h"

namespace carnot {

/// The best time of a call, seconds.
inline double fastest(const std::function<void()>& call) {
  constexpr double kRound = 0.2;
  call();
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    const Stopwatch watch;
    int calls = 0;
    do {
      call();
      ++calls;
    } while (watch.seconds() < kRound);
    best = std::min(best, watch.seconds() / calls);
  }
  return best;
}

inline std::vector<float> random_floats(std::int64_t count) {
  RandomStream stream(5);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(stream.uniform() - 0.5);
  return values;
}
inline std::vector<kernel::BFloat16> in_bfloat16(const std::vector<float>& values) {
  std::vector<kernel::BFloat16> narrow;
  for (float value : values) narrow.push_back(kernel::rounded(value));
  return narrow;
}

/// GB/s that all threads read together, from more memory than caches hold, on huge pages if the system has them.
inline double reading_speed() {
  constexpr std::int64_t kNumbers = std::int64_t{64} << 20, kPart = 1 << 16;
  const std::unique_ptr<float[], decltype(&free_aligned)> memory(
      static_cast<float*>(allocate_aligned(kNumbers * sizeof(float))), free_aligned);
  std::fill_n(memory.get(), kNumbers, 1.0F);
  std::vector<float> sums(kNumbers / kPart);
  const double seconds = fastest([&] {
    kernel_pool().run(kNumbers / kPart, [&](std::int64_t part) {
      sums[static_cast<std::size_t>(part)] =
          kernel::kernel_table<float>().dot(kPart, memory.get() + part * kPart, memory.get() + part * kPart);
    });
  });
  return kNumbers * sizeof(float) / seconds * 1e-9;
}

/// GFLOP/s if all threads multiply a few rows by one panel, again and again.
inline double multiplying_speed_float32(const std::vector<float>& numbers) {
  const auto& kernels = kernel::kernel_table<float>();
  constexpr std::int64_t kDepthInCache = 256, kCalls = 2000;
  const double seconds = fastest([&] {
    kernel_pool().run(kernel_pool().threads(), [&](std::int64_t) {
      float c[64 * 64];
      for (int call = 0; call < kCalls; ++call)
        kernels.gemm_tile(kernels.row_tile, kernels.panel, kDepthInCache, numbers.data(), kDepthInCache, 1,
                          numbers.data() + 64 * kDepthInCache, c, kernels.panel, false);
    });
  });
  return 2e-9 * kernel_pool().threads() * kCalls * kernels.row_tile * kernels.panel * kDepthInCache / seconds;
}
inline double multiplying_speed_bfloat16(const std::vector<kernel::BFloat16>& numbers) {
  constexpr std::int64_t kRows = 32, kPanels = 4, kDepthInCache = 512, kCalls = 300;
  const double seconds = fastest([&] {
    kernel_pool().run(kernel_pool().threads(), [&](std::int64_t) {
      std::vector<float> c(kRows * kPanels * kernel::kBFloat16Panel);
      for (int call = 0; call < kCalls; ++call)
        kernel::multiply_block(kernel::bfloat16_kernels(),
                               {.rows = kRows,
                                .columns = kPanels * kernel::kBFloat16Panel,
                                .a = numbers.data(),
                                .a_row = kDepthInCache,
                                .b = numbers.data() + kRows * kDepthInCache,
                                .b_panel = kDepthInCache * kernel::kBFloat16Panel,
                                .b_is_near = true,
                                .out = {.sums = c.data(), .row_stride = kPanels * kernel::kBFloat16Panel}},
                               kDepthInCache);
    });
  });
  return 2e-9 * kernel_pool().threads() * kCalls * kRows * kPanels * kernel::kBFloat16Panel * kDepthInCache / seconds;
}

}  // namespace carnot
