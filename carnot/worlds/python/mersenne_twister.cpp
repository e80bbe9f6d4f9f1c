#include "carnot/worlds/python/mersenne_twister.h"

#include <algorithm>

#include "carnot/core/base/check.h"

namespace carnot {

MersenneTwister MersenneTwister::from_word(std::uint32_t seed) {
  MersenneTwister twister;
  auto& state = twister.state_;
  state[0] = seed;
  for (std::uint32_t i = 1; i < kSize; ++i) state[i] = 1812433253u * (state[i - 1] ^ (state[i - 1] >> 30)) + i;
  return twister;
}

MersenneTwister MersenneTwister::from_words(std::span<const std::uint32_t> seed) {
  CARNOT_CHECK(!seed.empty(), "a seed has at least one word");
  MersenneTwister twister = from_word(19650218u);
  auto& state = twister.state_;
  std::size_t i = 1, j = 0;
  const auto advance = [&] {
    if (++i < kSize) return;
    state[0] = state[kSize - 1];
    i = 1;
  };
  const auto mixed = [&](std::uint32_t factor) { return state[i] ^ ((state[i - 1] ^ (state[i - 1] >> 30)) * factor); };
  for (std::size_t k = std::max<std::size_t>(kSize, seed.size()); k > 0; --k) {
    state[i] = mixed(1664525u) + seed[j] + static_cast<std::uint32_t>(j);
    advance();
    j = (j + 1) % seed.size();
  }
  for (int k = kSize - 1; k > 0; --k) {
    state[i] = mixed(1566083941u) - static_cast<std::uint32_t>(i);
    advance();
  }
  state[0] = 0x80000000u;
  return twister;
}

void MersenneTwister::refill() {
  constexpr int kShift = 397;
  for (int i = 0; i < kSize; ++i) {
    const auto at = [&](int k) { return state_[k < kSize ? k : k - kSize]; };
    const std::uint32_t mixed = (at(i) & 0x80000000u) | (at(i + 1) & 0x7fffffffu);
    state_[i] = at(i + kShift) ^ (mixed >> 1) ^ ((mixed & 1u) * 0x9908b0dfu);
  }
  position_ = 0;
}

std::uint32_t MersenneTwister::next() {
  if (position_ == kSize) refill();
  std::uint32_t y = state_[position_++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

}  // namespace carnot
