#include "carnot/worlds/python/numpy_random.h"

#include <array>
#include <bit>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

using Word128 = unsigned __int128;

constexpr Word128 kPcgMultiplier = (Word128{0x2360ed051fc65da4u} << 64) | 0x4385df649fccf645u;

// numpy's SeedSequence: mixes the seed's words into a pool of four and hashes that pool out again.
class SeedSequence {
 public:
  explicit SeedSequence(std::uint64_t seed) {
    const std::array<std::uint32_t, 4> entropy = {static_cast<std::uint32_t>(seed),
                                                  static_cast<std::uint32_t>(seed >> 32)};
    std::uint32_t constant = 0x43b0d7e5u;
    const auto hash = [&](std::uint32_t value) {
      value ^= constant;
      constant *= 0x931e8875u;
      value *= constant;
      return value ^ (value >> 16);
    };
    for (std::size_t i = 0; i < 4; ++i) pool_[i] = hash(entropy[i]);
    for (std::size_t from = 0; from < 4; ++from)
      for (std::size_t to = 0; to < 4; ++to)
        if (from != to) pool_[to] = mix(pool_[to], hash(pool_[from]));
  }

  std::array<std::uint64_t, 4> generate() const {
    std::array<std::uint64_t, 4> words{};
    std::uint32_t constant = 0x8b51f9ddu;
    for (std::size_t i = 0; i < 8; ++i) {
      std::uint32_t value = pool_[i % 4] ^ constant;
      constant *= 0x58f38dedu;
      value *= constant;
      value ^= value >> 16;
      words[i / 2] |= static_cast<std::uint64_t>(value) << (i % 2 * 32);
    }
    return words;
  }

 private:
  static std::uint32_t mix(std::uint32_t x, std::uint32_t y) {
    const std::uint32_t mixed = 0xca01f9ddu * x - 0x4973f715u * y;
    return mixed ^ (mixed >> 16);
  }

  std::array<std::uint32_t, 4> pool_{};
};

}  // namespace

std::uint32_t NumpyRandomState::randint(std::uint64_t bound) {
  CARNOT_CHECK(bound >= 1 && bound <= (std::uint64_t{1} << 32), "a bound outside [1, 2^32]");
  if (bound == 1) return 0;
  const auto last = static_cast<std::uint32_t>(bound - 1);
  const std::uint32_t mask = 0xffffffffu >> std::countl_zero(last);
  auto value = static_cast<std::uint32_t>(bits_()) & mask;
  while (value > last) value = static_cast<std::uint32_t>(bits_()) & mask;
  return value;
}

NumpyGenerator::NumpyGenerator(std::uint64_t seed) {
  const auto words = SeedSequence(seed).generate();
  increment_ = (((Word128{words[2]} << 64) | words[3]) << 1) | 1;
  state_ = increment_ + ((Word128{words[0]} << 64) | words[1]);
  state_ = state_ * kPcgMultiplier + increment_;
}

std::uint64_t NumpyGenerator::next64() {
  state_ = state_ * kPcgMultiplier + increment_;
  const auto folded = static_cast<std::uint64_t>(state_ >> 64) ^ static_cast<std::uint64_t>(state_);
  return std::rotr(folded, static_cast<int>(state_ >> 122));
}

std::uint32_t NumpyGenerator::next32() {
  if (waiting_) {
    const std::uint32_t high = *waiting_;
    waiting_.reset();
    return high;
  }
  const std::uint64_t both = next64();
  waiting_ = static_cast<std::uint32_t>(both >> 32);
  return static_cast<std::uint32_t>(both);
}

double NumpyGenerator::random() { return static_cast<double>(next64() >> 11) * (1.0 / 9007199254740992.0); }

std::uint32_t NumpyGenerator::integers(std::uint32_t bound) {
  CARNOT_CHECK(bound >= 1, "an empty range");
  if (bound == 1) return 0;
  const std::uint32_t threshold = (0u - bound) % bound;  // 2^32 mod bound
  std::uint64_t product = std::uint64_t{next32()} * bound;
  while (static_cast<std::uint32_t>(product) < threshold) product = std::uint64_t{next32()} * bound;
  return static_cast<std::uint32_t>(product >> 32);
}

int NumpyGenerator::choice(std::span<const double> probabilities) {
  double total = 0;
  for (double p : probabilities) total += p;
  CARNOT_CHECK(total > 0, "no probability at all");
  const double drawn = random();
  double cumulative = 0;
  const int last = static_cast<int>(probabilities.size()) - 1;
  for (int i = 0; i < last; ++i) {
    cumulative += probabilities[i];
    if (drawn < cumulative / total) return i;
  }
  return last;
}

}  // namespace carnot
