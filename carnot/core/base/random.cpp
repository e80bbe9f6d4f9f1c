#include "carnot/core/base/random.h"

#include <cmath>
#include <numbers>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

// The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection whose every output bit depends on every input bit.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

double to_unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

}  // namespace

std::uint64_t random_bits(const DrawKey& key) {
  std::uint64_t h = mix(key.seed);
  for (std::uint64_t part : {key.step, key.group, key.sibling, key.turn, key.position}) h = mix(h ^ part);
  return h;
}

double uniform(const DrawKey& key) { return to_unit(random_bits(key)); }

std::uint64_t derive_seed(std::uint64_t seed, std::string_view purpose, std::uint64_t index) {
  std::uint64_t h = mix(seed);
  for (char c : purpose) h = mix(h ^ static_cast<unsigned char>(c));
  return mix(h ^ index);
}

std::uint64_t RandomStream::bits() { return mix(mix(seed_) ^ count_++); }

double RandomStream::uniform() { return to_unit(bits()); }

double RandomStream::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
  CARNOT_CHECK_GT(bound, 0u);
  const std::uint64_t limit = ~0ull - ~0ull % bound;  // the largest multiple of bound that fits
  std::uint64_t x = bits();
  while (x >= limit) x = bits();
  return x % bound;
}

std::size_t RandomStream::weighted(std::span<const double> weights) {
  double sum = 0;
  for (double w : weights) sum += w;
  CARNOT_CHECK_GT(sum, 0.0);
  double left = uniform() * sum;
  for (std::size_t i = 0; i + 1 < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return i;
  }
  return weights.size() - 1;
}

}  // namespace carnot
