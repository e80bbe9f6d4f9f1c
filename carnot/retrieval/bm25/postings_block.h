// retrieval/bm25/postings_block.h -- up to 128 postings of a word as packed bits.
//
//   1 byte   bits of a difference       differences of documents, each less 1, to the one before
//   1 byte   bits of a count            counts, each less 1
//   the differences, then the counts, each rounded up to whole bytes; the first bits are the lowest
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace carnot {

inline constexpr std::size_t kBlockPostings = 128;

/// Bytes that have to follow a block, of whatever value: they are read with its last bits.
inline constexpr std::size_t kBlockPadding = 8;

struct PostingsBlock {
  std::array<std::uint32_t, kBlockPostings> documents{};
  std::array<std::uint32_t, kBlockPostings> counts{};
  std::size_t size = 0;
};

/// Appends the block to `bytes`. `before` is the document before its first, or -1.
/// REQUIRES: 1 <= size <= kBlockPostings, documents grow from beyond `before`, counts >= 1.
void pack_postings(const PostingsBlock& block, std::int64_t before, std::string& bytes);

/// Reads `size` postings from the beginning of `bytes` (and nothing beyond it) into `block`. False if they are
/// damaged: the block does not fit with its padding, or its last document is not `last`.
/// REQUIRES: 1 <= size <= kBlockPostings.
[[nodiscard]] bool unpack_postings(std::string_view bytes, std::int64_t before, std::uint32_t last, std::size_t size,
                                   PostingsBlock& block);

}  // namespace carnot
