// worlds/python/numpy_random.h -- numpy's two generators, draw for draw: published boards are made with them.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>

namespace carnot {

/// The legacy numpy.random.RandomState(seed).
class NumpyRandomState {
 public:
  explicit NumpyRandomState(std::uint32_t seed) : bits_(seed) {}

  /// randint(bound), in [0, bound), by masked rejection. REQUIRES: 1 <= bound <= 2^32
  std::uint32_t randint(std::uint64_t bound);

 private:
  std::mt19937 bits_;
};

/// numpy.random.default_rng(seed): PCG64 (XSL-RR 128/64) seeded through SeedSequence.
class NumpyGenerator {
 public:
  explicit NumpyGenerator(std::uint64_t seed);

  double random();  ///< in [0, 1), a multiple of 2^-53

  /// integers(bound), in [0, bound): Lemire's method on 32-bit halves, the second of which waits for the next call.
  /// REQUIRES: 1 <= bound < 2^32
  std::uint32_t integers(std::uint32_t bound);

  /// choice(len(p), p=p): one random() looked up in the normalised cumulative sum. REQUIRES: a positive sum
  int choice(std::span<const double> probabilities);

 private:
  std::uint64_t next64();
  std::uint32_t next32();

  unsigned __int128 state_ = 0;
  unsigned __int128 increment_ = 0;
  std::optional<std::uint32_t> waiting_{};
};

}  // namespace carnot
