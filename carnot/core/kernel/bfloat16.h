// kernel/bfloat16.h -- the number format bfloat16, the upper half of a float32, and the type it is computed in.
#pragma once

#include <cstdint>

namespace carnot::kernel {

/// One number as its bits. Same layout as LibTorch's at::BFloat16.
struct BFloat16 {
  std::uint16_t bits;
  bool operator==(const BFloat16&) const = default;
};
static_assert(sizeof(BFloat16) == 2);

/// The type used to compute with numbers stored as S: float32 for bfloat16, otherwise S.
template <class S>
struct ComputedType {
  using type = S;
};
template <>
struct ComputedType<BFloat16> {
  using type = float;
};
template <class S>
using Computed = typename ComputedType<S>::type;

// Functions are always inlined, because sources for different instruction sets use them.

/// The same number as float32.
[[gnu::always_inline]] inline float widened(BFloat16 x) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(x.bits) << 16);
}

/// The nearest bfloat16, ties to even. NaN stays NaN; overflow becomes infinite.
[[gnu::always_inline]] inline BFloat16 rounded(float x) {
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  if (x != x) return {static_cast<std::uint16_t>((bits >> 16) | 0x40)};
  return {static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

/// Converts between the stored and the computed type, for any type.
[[gnu::always_inline]] inline float widened(float x) { return x; }
[[gnu::always_inline]] inline double widened(double x) { return x; }
template <class S>
[[gnu::always_inline]] inline S stored(Computed<S> x) {
  if constexpr (__is_same(S, BFloat16)) {
    return rounded(x);
  } else {
    return x;
  }
}

}  // namespace carnot::kernel
