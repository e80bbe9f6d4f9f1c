// worlds/python/python_random.h -- Python's random.Random, draw for draw: published boards are made with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace carnot {

class PythonRandom {
 public:
  /// random.Random(seed).
  explicit PythonRandom(std::uint64_t seed);

  double random();                               ///< in [0, 1), 53 bits
  std::uint32_t getrandbits(int bits);           ///< REQUIRES: 1 <= bits <= 32
  std::uint32_t randbelow(std::uint32_t bound);  ///< in [0, bound). REQUIRES: bound > 0
  int randint(int low, int high);                ///< low <= x <= high

  template <class T>
  const T& choice(std::span<const T> items) {
    return items[randbelow(static_cast<std::uint32_t>(items.size()))];
  }

  /// random.sample of a population of at most 21, where Python selects from a shrinking pool.
  template <class T>
  std::vector<T> sample(std::vector<T> pool, std::size_t count) {
    std::vector<T> chosen;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t live = pool.size() - i;
      const std::size_t j = randbelow(static_cast<std::uint32_t>(live));
      chosen.push_back(pool[j]);
      pool[j] = pool[live - 1];
    }
    return chosen;
  }

  template <class Container>
  void shuffle(Container& items) {
    for (std::size_t i = items.size(); i-- > 1;)
      std::swap(items[i], items[randbelow(static_cast<std::uint32_t>(i + 1))]);
  }

 private:
  std::mt19937 bits_;
};

}  // namespace carnot
