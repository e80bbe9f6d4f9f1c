// retrieval/bm25/index_format.h -- the layout of an index file, for its writer and its reader only.
//
//   head        IndexHead
//   texts       of each passage: length of its id in four bytes, its id, its contents
//   passages    for each passage: where it begins in `texts`; one more: where the last one ends
//   lengths     of each passage: its number of words as one byte (lucene_norm.h)
//   postings    blocks (postings_block.h) of each word, one after the other, then kBlockPadding bytes
//   words       the words in the order of their bytes, one after the other
//   terms       an IndexTerm for each word; one more: where the last one ends
//   blocks      an IndexBlock for each block, word by word
//
// Sections begin at multiples of 64 bytes. Numbers are as a little-endian processor has them.
#pragma once

#include <array>
#include <cstdint>

namespace carnot {

inline constexpr std::array<char, 8> kIndexMagic = {'c', 'a', 'r', 'n', 'o', 't', '2', '5'};
inline constexpr std::uint32_t kIndexVersion = 1;
inline constexpr std::uint32_t kIndexByteOrder = 0x01020304;
inline constexpr std::uint64_t kIndexAlignment = 64;

enum IndexSection { kTexts, kPassages, kLengths, kPostings, kWords, kTerms, kBlocks, kNumIndexSections };

struct IndexSectionPlace {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;  // CRC-64 of ECMA-182, as .xz has it
};

struct IndexHead {
  std::array<char, 8> magic = kIndexMagic;
  std::uint32_t version = kIndexVersion;
  std::uint32_t byte_order = kIndexByteOrder;
  std::uint32_t words = 0;  // IndexWords
  float k1 = 0;
  float b = 0;
  std::uint32_t unused = 0;
  std::uint64_t num_passages = 0;
  std::uint64_t num_words = 0;  // of all passages together
  std::uint64_t num_terms = 0;  // different ones
  std::uint64_t file_bytes = 0;
  std::uint64_t source_bytes = 0;  // of the file that the passages were read from
  std::uint64_t source_mark = 0;   // CRC-64 of its beginning and its end
  std::array<IndexSectionPlace, kNumIndexSections> sections{};
  std::uint64_t checksum = 0;  // of what is before it
};
static_assert(sizeof(IndexHead) == 256 && sizeof(IndexHead) % kIndexAlignment == 0);

struct IndexTerm {
  std::uint64_t word_begin = 0;      // in `words`
  std::uint64_t postings_begin = 0;  // in `postings`
  std::uint64_t first_block = 0;     // number in `blocks`
  std::uint64_t num_documents = 0;
};
static_assert(sizeof(IndexTerm) == 32);

struct IndexBlock {
  std::uint32_t last_document = 0;
  std::uint32_t offset = 0;  // from the word's first block, in bytes
  float most = 0;            // of count times inverse norm over its postings: bounds what the block adds to a score
};
static_assert(sizeof(IndexBlock) == 12);

}  // namespace carnot
