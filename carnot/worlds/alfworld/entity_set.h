// worlds/alfworld/entity_set.h -- a set of a room's objects or receptacles, by number, in two machine words.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace carnot {

/// The published games have up to 71 objects and 54 receptacles.
inline constexpr int kMaxAlfworldEntities = 128;

class EntitySet {
 public:
  bool has(int entity) const { return (words_[word(entity)] & bit(entity)) != 0; }
  void add(int entity) { words_[word(entity)] |= bit(entity); }
  void remove(int entity) { words_[word(entity)] &= ~bit(entity); }
  void flip(int entity) { words_[word(entity)] ^= bit(entity); }

  bool empty() const { return (words_[0] | words_[1]) == 0; }
  int size() const { return std::popcount(words_[0]) + std::popcount(words_[1]); }

  friend EntitySet operator&(const EntitySet& a, const EntitySet& b) {
    return {a.words_[0] & b.words_[0], a.words_[1] & b.words_[1]};
  }
  friend EntitySet operator|(const EntitySet& a, const EntitySet& b) {
    return {a.words_[0] | b.words_[0], a.words_[1] | b.words_[1]};
  }
  /// Those of `a` that are not in `b`.
  friend EntitySet operator-(const EntitySet& a, const EntitySet& b) {
    return {a.words_[0] & ~b.words_[0], a.words_[1] & ~b.words_[1]};
  }
  bool operator==(const EntitySet&) const = default;

  /// Calls visit(entity) for each, in ascending order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (int w = 0; w < 2; ++w)
      for (std::uint64_t left = words_[static_cast<std::size_t>(w)]; left != 0; left &= left - 1)
        visit(64 * w + std::countr_zero(left));
  }

  EntitySet() = default;

 private:
  EntitySet(std::uint64_t low, std::uint64_t high) : words_{low, high} {}
  static std::size_t word(int entity) { return static_cast<std::size_t>(entity) / 64; }
  static std::uint64_t bit(int entity) { return std::uint64_t{1} << (static_cast<unsigned>(entity) % 64); }

  std::array<std::uint64_t, 2> words_{};
};

}  // namespace carnot
