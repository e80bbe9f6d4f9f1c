// base/saturating.h -- integers whose sums and products saturate at the limits of 64 bits, for sizes computed from
// settings: an absurd one must come out as too large, not wrap around to something small.
#pragma once

#include <algorithm>
#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>

namespace carnot {

class Saturating {
 public:
  static constexpr std::int64_t kHighest = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();

  constexpr Saturating() = default;
  template <std::signed_integral T>
  constexpr Saturating(T value) : value_(value) {}  // NOLINT: a number is one

  constexpr std::int64_t value() const { return value_; }

  friend constexpr Saturating operator+(Saturating a, Saturating b) {
    std::int64_t sum = 0;
    if (!__builtin_add_overflow(a.value_, b.value_, &sum)) return sum;
    return a.value_ > 0 ? kHighest : kLowest;
  }
  friend constexpr Saturating operator-(Saturating a, Saturating b) {
    std::int64_t difference = 0;
    if (!__builtin_sub_overflow(a.value_, b.value_, &difference)) return difference;
    return a.value_ >= 0 ? kHighest : kLowest;
  }
  friend constexpr Saturating operator*(Saturating a, Saturating b) {
    std::int64_t product = 0;
    if (!__builtin_mul_overflow(a.value_, b.value_, &product)) return product;
    return (a.value_ > 0) == (b.value_ > 0) ? kHighest : kLowest;
  }
  /// REQUIRES: b > 0.
  friend constexpr Saturating operator/(Saturating a, Saturating b) { return a.value_ / b.value_; }

  constexpr Saturating& operator+=(Saturating other) { return *this = *this + other; }

  friend constexpr auto operator<=>(Saturating a, Saturating b) = default;

 private:
  std::int64_t value_ = 0;
};

}  // namespace carnot
