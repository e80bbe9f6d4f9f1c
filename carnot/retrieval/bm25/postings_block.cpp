#include "carnot/retrieval/bm25/postings_block.h"

#include <bit>
#include <cstring>
#include <span>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

constexpr int kWidestValue = 32;

std::size_t packed_bytes(int width, std::size_t count) { return (static_cast<std::size_t>(width) * count + 7) / 8; }

int width_of(std::span<const std::uint32_t> values) {
  std::uint32_t all = 0;
  for (const std::uint32_t value : values) all |= value;
  return std::bit_width(all);
}

void pack_values(std::span<const std::uint32_t> values, int width, std::string& bytes) {
  std::uint64_t waiting = 0;
  int bits = 0;
  for (const std::uint32_t value : values) {
    waiting |= static_cast<std::uint64_t>(value) << bits;
    for (bits += width; bits >= 8; bits -= 8, waiting >>= 8) bytes += static_cast<char>(waiting & 0xFF);
  }
  if (bits > 0) bytes += static_cast<char>(waiting & 0xFF);
}

/// Reads up to seven bytes beyond the last value.
void unpack_values(const char* from, int width, std::span<std::uint32_t> values) {
  const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
  std::size_t bit = 0;
  for (std::uint32_t& value : values) {
    std::uint64_t eight_bytes = 0;
    std::memcpy(&eight_bytes, from + bit / 8, sizeof eight_bytes);
    value = static_cast<std::uint32_t>((eight_bytes >> (bit % 8)) & mask);
    bit += static_cast<std::size_t>(width);
  }
}

}  // namespace

void pack_postings(const PostingsBlock& block, std::int64_t before, std::string& bytes) {
  CARNOT_CHECK(block.size >= 1 && block.size <= kBlockPostings, std::to_string(block.size));
  std::array<std::uint32_t, kBlockPostings> gaps{}, counts{};
  for (std::size_t i = 0; i < block.size; ++i) {
    CARNOT_CHECK(block.documents[i] > before && block.counts[i] >= 1, "postings in order");
    gaps[i] = static_cast<std::uint32_t>(block.documents[i] - before - 1);
    counts[i] = block.counts[i] - 1;
    before = block.documents[i];
  }
  const auto used_gaps = std::span(gaps).first(block.size), used_counts = std::span(counts).first(block.size);
  const int gap_width = width_of(used_gaps), count_width = width_of(used_counts);
  bytes += static_cast<char>(gap_width);
  bytes += static_cast<char>(count_width);
  pack_values(used_gaps, gap_width, bytes);
  pack_values(used_counts, count_width, bytes);
}

bool unpack_postings(std::string_view bytes, std::int64_t before, std::uint32_t last, std::size_t size,
                     PostingsBlock& block) {
  if (bytes.size() < 2) return false;
  const int gap_width = static_cast<unsigned char>(bytes[0]), count_width = static_cast<unsigned char>(bytes[1]);
  if (gap_width > kWidestValue || count_width > kWidestValue) return false;
  const std::size_t counts_at = 2 + packed_bytes(gap_width, size);
  if (counts_at + packed_bytes(count_width, size) + kBlockPadding > bytes.size()) return false;
  block.size = size;
  unpack_values(bytes.data() + 2, gap_width, std::span(block.documents).first(size));
  unpack_values(bytes.data() + counts_at, count_width, std::span(block.counts).first(size));
  // Every gap adds at least 1, and the sum is kept in 64 bits: if the last document is right, the others lie below it.
  std::int64_t document = before;
  for (std::size_t i = 0; i < size; ++i) {
    document += std::int64_t{block.documents[i]} + 1;
    block.documents[i] = static_cast<std::uint32_t>(document);
    ++block.counts[i];
  }
  return document == std::int64_t{last};
}

}  // namespace carnot
