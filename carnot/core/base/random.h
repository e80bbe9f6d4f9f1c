// base/random.h -- random draws that belong to a decision, not to a stream.
//
// A draw is a function of its key alone. It does not depend on which tokens are sampled in one batch, on how
// many threads or in which order, and five integers reproduce a failing rollout.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace carnot {

/// Identifies one random decision of a run.
struct DrawKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint64_t group = 0;
  std::uint64_t sibling = 0;
  std::uint64_t turn = 0;
  std::uint64_t position = 0;
};

/// 64 well-mixed bits of `key`.
std::uint64_t random_bits(const DrawKey& key);

/// Uniform in [0, 1), a multiple of 2^-53.
double uniform(const DrawKey& key);

/// A seed for one independent part of a run ("worlds", "weights", "shuffle").
std::uint64_t derive_seed(std::uint64_t seed, std::string_view purpose, std::uint64_t index = 0);

/// A sequence of draws from one seed, for building worlds, boards, demonstrations and weights. Copyable; its whole
/// state is (seed, count), so a checkpoint stores two integers.
class RandomStream {
 public:
  explicit RandomStream(std::uint64_t seed, std::uint64_t count = 0) : seed_(seed), count_(count) {}

  std::uint64_t bits();
  double uniform();                          ///< in [0, 1)
  double normal();                           ///< mean 0, variance 1
  std::uint64_t below(std::uint64_t bound);  ///< unbiased, in [0, bound). REQUIRES: bound > 0
  bool chance(double probability) { return uniform() < probability; }

  /// A random element; all are equally likely. REQUIRES: not empty.
  template <class Container>
  auto& pick(Container& from) {
    return from[below(from.size())];
  }

  /// Fisher-Yates shuffle.
  template <class Container>
  void shuffle(Container& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

  /// Index i with probability weights[i] / sum. REQUIRES: a positive sum.
  std::size_t weighted(std::span<const double> weights);

  std::uint64_t seed() const { return seed_; }
  std::uint64_t count() const { return count_; }

 private:
  std::uint64_t seed_;
  std::uint64_t count_;
};

}  // namespace carnot
