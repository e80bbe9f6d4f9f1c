#include "carnot/worlds/python/python_random.h"

#include <bit>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

MersenneTwister seeded(std::uint64_t seed) {
  const std::uint32_t words[] = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  return MersenneTwister::from_words({words, words[1] == 0 ? std::size_t{1} : std::size_t{2}});
}

}  // namespace

PythonRandom::PythonRandom(std::uint64_t seed) : bits_(seeded(seed)) {}

double PythonRandom::random() {
  const std::uint32_t high = bits_.next() >> 5, low = bits_.next() >> 6;
  return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0);
}

std::uint32_t PythonRandom::getrandbits(int bits) { return bits_.next() >> (32 - bits); }

std::uint32_t PythonRandom::randbelow(std::uint32_t bound) {
  CARNOT_CHECK(bound > 0, "an empty range");
  const int width = std::bit_width(bound);
  std::uint32_t value = getrandbits(width);
  while (value >= bound) value = getrandbits(width);
  return value;
}

int PythonRandom::randint(int low, int high) {
  return low + static_cast<int>(randbelow(static_cast<std::uint32_t>(high - low + 1)));
}

}  // namespace carnot
