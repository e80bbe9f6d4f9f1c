// cuda/device_program.h -- the device code that Carnot has: every program that is compiled at run time.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace carnot::cuda {

struct DeviceProgram {
  std::string name{};                      ///< for messages: "statistics of float"
  std::string_view text{};                 ///< CUDA C++
  std::vector<std::string> definitions{};  ///< "NAME=value"
  std::vector<std::string> kernels{};      ///< the names under which they are found in the compiled program
};

/// Threads of a block of every kernel.
inline constexpr unsigned kBlockThreads = 256;

/// The statistics' kernels for logits of float, of double, and of float with gradients in bfloat16.
enum class StatisticsVariant { Float, Double, RoundedFloat };
const DeviceProgram& statistics_program(StatisticsVariant variant);

/// All of the above.
std::span<const DeviceProgram> device_programs();

/// What programs include, by the name that they include it by.
std::span<const std::pair<std::string, std::string_view>> device_headers();

}  // namespace carnot::cuda
