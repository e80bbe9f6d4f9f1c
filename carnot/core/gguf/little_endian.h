// gguf/little_endian.h -- numbers of a GGUF file.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace carnot {

/// The bits of a number.
template <class Number>
using BitsOf =
    std::conditional_t<sizeof(Number) == 1, std::uint8_t,
                       std::conditional_t<sizeof(Number) == 2, std::uint16_t,
                                          std::conditional_t<sizeof(Number) == 4, std::uint32_t, std::uint64_t>>>;

/// The number in the first bytes. REQUIRES: as many.
template <class Number>
Number from_little_endian(std::string_view bytes) {
  BitsOf<Number> bits = 0;
  for (std::size_t i = sizeof(Number); i-- > 0;)
    bits = static_cast<BitsOf<Number>>(static_cast<std::uint64_t>(bits) << 8 | static_cast<unsigned char>(bytes[i]));
  return std::bit_cast<Number>(bits);
}

/// Its bytes.
template <class Number>
std::array<char, sizeof(Number)> to_little_endian(Number number) {
  const auto bits = static_cast<std::uint64_t>(std::bit_cast<BitsOf<Number>>(number));
  std::array<char, sizeof(Number)> bytes{};
  for (std::size_t i = 0; i < sizeof(Number); ++i) bytes[i] = static_cast<char>(bits >> (8 * i) & 0xff);
  return bytes;
}

}  // namespace carnot
