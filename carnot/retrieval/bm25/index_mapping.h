// retrieval/bm25/index_mapping.h -- an index file in memory, as its sections, and their layout. For its writer and its
// reader only: offsets within the sections are checked by those who follow them.
//
//   head        IndexHead
//   texts       of each passage: length of its id in four bytes, its id, its contents
//   passages    for each passage: where it begins in `texts`; one more: where the last one ends
//   lengths     of each passage: its number of words as one byte (lucene_length_code() in bm25.h)
//   postings    blocks (postings_block.h) of each word, one after the other, then kBlockPadding bytes
//   words       the words in the order of their bytes, one after the other
//   terms       an IndexTerm for each word; one more: where the last one ends
//   blocks      an IndexBlock for each block, word by word
//
// Sections begin at multiples of 64 bytes. Numbers are as a little-endian processor has them.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/descriptor.h"
#include "carnot/core/base/result.h"
#include "carnot/retrieval/bm25/bm25.h"

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

  double mean_length() const {
    return num_words > 0 ? static_cast<double>(num_words) / static_cast<double>(num_passages) : 1;
  }
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

class IndexMapping {
 public:
  /// The error names the file and says what is wrong with it.
  static Result<std::unique_ptr<const IndexMapping>> open(const std::filesystem::path& path);
  ~IndexMapping();
  IndexMapping(const IndexMapping&) = delete;
  IndexMapping& operator=(const IndexMapping&) = delete;

  const IndexHead& head() const { return *reinterpret_cast<const IndexHead*>(start_); }
  const std::filesystem::path& path() const { return path_; }

  std::string_view section(IndexSection which) const {
    const IndexSectionPlace& place = head().sections[which];
    return {start_ + place.begin, place.bytes};
  }
  template <class Record>
  std::span<const Record> records(IndexSection which) const {
    const std::string_view bytes = section(which);
    return {reinterpret_cast<const Record*>(bytes.data()), bytes.size() / sizeof(Record)};
  }

  /// By length code: 1 / (k1 * (1 - b + b * length / mean length)).
  std::span<const float> inverse_norm() const { return inverse_norm_; }

  /// Throws DamagedIndex where the file has become shorter since it was opened: reading beyond its end would end the
  /// program.
  void check_size() const;
  /// Throws DamagedIndex: "PATH: damaged: WHAT".
  [[noreturn]] void damaged(const std::string& what) const;

 private:
  explicit IndexMapping(std::filesystem::path path) : path_(std::move(path)) {}
  Status map();
  Status check_head() const;

  std::filesystem::path path_;
  Descriptor file_{};
  const char* start_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::array<float, 256> inverse_norm_{};
};

/// The `k` best passages for the words of a query, best first; equal scores in order of passage. Throws DamagedIndex.
std::vector<SearchHit> search_index(const IndexMapping& index, std::span<const std::string> words, int k);

}  // namespace carnot
