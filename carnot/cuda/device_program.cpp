#include "carnot/cuda/device_program.h"

#include <array>

#include "carnot/cuda/device_texts.h"

namespace carnot::cuda {
namespace {

DeviceProgram statistics_of(const std::string& name, const std::string& number, bool round_gradients) {
  DeviceProgram program{.name = "statistics of " + name,
                        .text = kStatisticsText,
                        .definitions = {"CARNOT_NUMBER=" + number, "CARNOT_THREADS=" + std::to_string(kBlockThreads),
                                        "CARNOT_VARIANT=device", "CARNOT_KERNEL=extern \"C\" __global__"},
                        .kernels = {"statistics_forward", "statistics_backward"}};
  if (round_gradients) program.definitions.emplace_back("CARNOT_ROUND_GRADIENTS");
  return program;
}

const std::array<DeviceProgram, 3>& programs() {
  static const std::array<DeviceProgram, 3> all{statistics_of("float", "float", false),
                                                statistics_of("double", "double", false),
                                                statistics_of("float, gradients in bfloat16", "float", true)};
  return all;
}

}  // namespace

const DeviceProgram& statistics_program(StatisticsVariant variant) {
  return programs().at(static_cast<std::size_t>(variant));
}

std::span<const DeviceProgram> device_programs() { return programs(); }

std::span<const std::pair<std::string, std::string_view>> device_headers() {
  static const std::array<std::pair<std::string, std::string_view>, 1> all{
      std::pair{std::string("carnot/cuda/statistics_parameters.h"), kStatisticsParameters}};
  return all;
}

}  // namespace carnot::cuda
