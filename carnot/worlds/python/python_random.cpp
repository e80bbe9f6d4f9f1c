#include "carnot/worlds/python/python_random.h"

#include <bit>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

/// init_by_array of the Mersenne Twister's authors (2002), which std::mt19937 lacks: how Python seeds it with words.
class InitByArray {
 public:
  using result_type = std::uint_least32_t;

  explicit InitByArray(std::uint64_t seed) {
    for (words_ = {static_cast<std::uint32_t>(seed)}; (seed >>= 32) != 0;)
      words_.push_back(static_cast<std::uint32_t>(seed));
  }

  void generate(result_type* begin, result_type* end) const {
    const std::span state(begin, end);
    const std::size_t size = state.size();
    state[0] = 19650218u;
    for (std::size_t i = 1; i < size; ++i)
      state[i] = 1812433253u * (state[i - 1] ^ (state[i - 1] >> 30)) + static_cast<result_type>(i);
    std::size_t i = 1;
    const auto mixed = [&](result_type factor) { return state[i] ^ ((state[i - 1] ^ (state[i - 1] >> 30)) * factor); };
    const auto advance = [&] {
      if (++i < size) return;
      state[0] = state[size - 1];
      i = 1;
    };
    for (std::size_t k = 0; k < size; ++k, advance()) {
      const std::size_t j = k % words_.size();
      state[i] = mixed(1664525u) + words_[j] + static_cast<result_type>(j);
    }
    for (std::size_t k = 1; k < size; ++k, advance()) state[i] = mixed(1566083941u) - static_cast<result_type>(i);
    state[0] = 0x80000000u;
  }

 private:
  std::vector<std::uint32_t> words_{};
};

std::mt19937 seeded(std::uint64_t seed) {
  InitByArray words(seed);
  return std::mt19937(words);
}

}  // namespace

PythonRandom::PythonRandom(std::uint64_t seed) : bits_(seeded(seed)) {}

double PythonRandom::random() {
  const auto high = static_cast<double>(bits_() >> 5), low = static_cast<double>(bits_() >> 6);
  return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0);
}

std::uint32_t PythonRandom::getrandbits(int bits) { return static_cast<std::uint32_t>(bits_() >> (32 - bits)); }

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
