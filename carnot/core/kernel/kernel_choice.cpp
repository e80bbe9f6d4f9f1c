#include "carnot/core/kernel/kernel_choice.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>

namespace carnot::kernel {
namespace {

constexpr std::string_view kNarrowToWide[] = {"baseline", "avx2", "avx512", "avx512_bf16", "amx"};

std::string_view widest_named() {
  const char* value = std::getenv("CARNOT_KERNELS");
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

bool may_use(std::string_view set) {
  const auto* const widest = std::ranges::find(kNarrowToWide, widest_named());
  return std::ranges::find(kNarrowToWide, set) <= widest;
}

Status check_kernel_choice() {
  const std::string_view named = widest_named();
  if (named.empty() || std::ranges::find(kNarrowToWide, named) != std::end(kNarrowToWide)) return Done{};
  return Error{"the environment's CARNOT_KERNELS: is '" + std::string(named) +
               "'; expected amx, avx512_bf16, avx512, avx2 or baseline, or nothing for the widest that there is"};
}

}  // namespace carnot::kernel
