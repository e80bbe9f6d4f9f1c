#include "carnot/core/optim/rounding_kernel.h"

#include <cstring>

namespace carnot {

void round_stochastically(const float* values, std::int64_t count, std::uint64_t key, std::int64_t first,
                          std::uint16_t* into) {
  for (std::int64_t i = 0; i < count; ++i) {
    // SplitMix64 (Steele et al. 2014) of the element's number.
    std::uint64_t x = static_cast<std::uint64_t>(first + i + 1) * 0x9E3779B97F4A7C15 + key;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    x ^= x >> 31;
    std::uint32_t bits;
    std::memcpy(&bits, values + i, sizeof(bits));
    into[i] = static_cast<std::uint16_t>((bits + static_cast<std::uint32_t>(x & 0xFFFF)) >> 16);
  }
}

void join_halves(const std::uint16_t* upper, const std::int16_t* lower, std::int64_t count, float* values) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t bits = (std::uint32_t{upper[i]} << 16) + static_cast<std::uint32_t>(std::int32_t{lower[i]});
    std::memcpy(values + i, &bits, sizeof(bits));
  }
}

void split_halves(const float* values, std::int64_t count, std::uint16_t* upper, std::int16_t* lower) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, values + i, sizeof(bits));
    upper[i] = static_cast<std::uint16_t>((bits + 0x8000) >> 16);
    lower[i] = static_cast<std::int16_t>(static_cast<std::uint16_t>(bits));
  }
}

}  // namespace carnot
