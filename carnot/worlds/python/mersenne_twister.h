// worlds/python/mersenne_twister.h -- MT19937 with its two published ways to seed.
//
// Matsumoto and Nishimura 1998; seeding of 2002. std::mt19937 has the same output but lacks init_by_array.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace carnot {

class MersenneTwister {
 public:
  /// init_genrand.
  static MersenneTwister from_word(std::uint32_t seed);
  /// init_by_array. REQUIRES: not empty.
  static MersenneTwister from_words(std::span<const std::uint32_t> seed);

  std::uint32_t next();

 private:
  static constexpr int kSize = 624;

  void refill();

  std::array<std::uint32_t, kSize> state_{};
  int position_ = kSize;
};

}  // namespace carnot
