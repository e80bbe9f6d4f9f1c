#include "carnot/core/text/vocabulary.h"

#include <cstring>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

std::uint32_t hash_of(std::string_view bytes) {
  constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15u;
  std::uint64_t hash = bytes.size() * kMultiplier;
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t length = bytes.size() < 8 ? bytes.size() : 8;
    std::memcpy(&word, bytes.data(), length);
    hash = (hash ^ word) * kMultiplier;
    hash ^= hash >> 29;
    bytes.remove_prefix(length);
  }
  return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

}  // namespace

void Vocabulary::insert(TokenId id, std::string_view bytes, bool reachable) {
  CARNOT_CHECK(id >= 0 && !contains(id), "token id " + std::to_string(id));
  if (id >= size()) entries_.resize(static_cast<std::size_t>(id) + 1);
  entries_[id] = {.offset = arena_.size(), .length = static_cast<std::uint32_t>(bytes.size())};
  arena_ += bytes;
  if (!reachable) return;
  CARNOT_CHECK(find(bytes) < 0, "two tokens of the same bytes");
  if (2 * ++used_ > slots_.size()) grow();
  place({.hash = hash_of(bytes), .id = id});
}

TokenId Vocabulary::find(std::string_view bytes_wanted) const {
  const std::uint32_t hash = hash_of(bytes_wanted);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask; slots_[at].id >= 0; at = (at + 1) & mask)
    if (slots_[at].hash == hash && bytes(slots_[at].id) == bytes_wanted) return slots_[at].id;
  return -1;
}

void Vocabulary::place(Slot slot) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = slot.hash & mask;
  while (slots_[at].id >= 0) at = (at + 1) & mask;
  slots_[at] = slot;
}

void Vocabulary::grow() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  for (const Slot& slot : old)
    if (slot.id >= 0) place(slot);
}

}  // namespace carnot
