// gguf/little_endian.h -- numbers of a GGUF file.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace carnot {

/// The number in the first bytes. REQUIRES: as many.
template <class Number>
Number from_little_endian(std::string_view bytes) {
  using Bits =
      std::conditional_t<sizeof(Number) == 1, std::uint8_t,
                         std::conditional_t<sizeof(Number) == 2, std::uint16_t,
                                            std::conditional_t<sizeof(Number) == 4, std::uint32_t, std::uint64_t>>>;
  Bits bits = 0;
  for (std::size_t i = sizeof(Bits); i-- > 0;)
    bits = static_cast<Bits>(static_cast<std::uint64_t>(bits) << 8 | static_cast<unsigned char>(bytes[i]));
  return std::bit_cast<Number>(bits);
}

}  // namespace carnot
