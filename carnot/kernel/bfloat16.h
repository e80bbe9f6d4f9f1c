// kernel/bfloat16.h -- the number format bfloat16, the upper half of a float32, and what it is computed in.
#pragma once

#include <cstdint>

namespace carnot::kernel {

/// One number as its bits. LibTorch's at::BFloat16 has the same layout.
struct BFloat16 {
  std::uint16_t bits;
  bool operator==(const BFloat16&) const = default;
};
static_assert(sizeof(BFloat16) == 2);

/// What numbers that are stored as S are computed in: bfloat16 in float32, others in themselves.
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

/// The nearest bfloat16, of two equally near ones the even one. What is not a number stays so; what is too large
/// becomes infinite.
[[gnu::always_inline]] inline BFloat16 rounded(float x) {
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  if (x != x) return {static_cast<std::uint16_t>((bits >> 16) | 0x40)};
  return {static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

/// Between a number as it is stored and as it is computed with, for any type.
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
