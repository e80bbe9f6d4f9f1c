#include "carnot/retrieval/bm25/index_mapping.h"

#include <lzma.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstddef>
#include <limits>

#include "carnot/core/base/file.h"
#include "carnot/retrieval/bm25/index_file.h"
#include "carnot/retrieval/bm25/lucene_norm.h"
#include "carnot/retrieval/bm25/postings_block.h"

namespace carnot {

Result<std::unique_ptr<const IndexMapping>> IndexMapping::open(const std::filesystem::path& path) {
  std::unique_ptr<IndexMapping> mapping(new IndexMapping(path));
  CARNOT_RETURN_IF_ERROR(mapping->map());
  CARNOT_RETURN_IF_ERROR(mapping->check_head());
  const IndexHead& head = mapping->head();
  mapping->inverse_norm_ = lucene_inverse_norms(head.k1, head.b, head.num_words, head.num_passages);
  return std::unique_ptr<const IndexMapping>(std::move(mapping));
}

IndexMapping::~IndexMapping() {
  if (start_ != nullptr) ::munmap(const_cast<char*>(start_), bytes_);
}

Status IndexMapping::map() {
  CARNOT_ASSIGN_OR_RETURN(file_, open_regular_file(path_));
  struct stat info{};
  if (::fstat(file_.get(), &info) != 0) return system_error(path_, "cannot read");
  bytes_ = static_cast<std::uint64_t>(info.st_size);
  if (bytes_ < sizeof(IndexHead)) return Error{path_.string() + ": is no BM25 index: it ends within the head"};
  void* start = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file_.get(), 0);
  if (start == MAP_FAILED) return system_error(path_, "cannot map into memory");
  start_ = static_cast<const char*>(start);
  return Done{};
}

Status IndexMapping::check_head() const {
  const IndexHead& it = head();
  const std::string name = path_.string();
  if (it.magic != kIndexMagic) return Error{name + ": is no BM25 index"};
  if (it.byte_order != kIndexByteOrder) return Error{name + ": was built on a machine with another byte order"};
  if (it.version != kIndexVersion)
    return Error{name + ": has version " + std::to_string(it.version) + ", expected " + std::to_string(kIndexVersion) +
                 "; rebuild it"};
  const auto* head_bytes = reinterpret_cast<const std::uint8_t*>(start_);
  if (::lzma_crc64(head_bytes, offsetof(IndexHead, checksum), 0) != it.checksum)
    return Error{name + ": damaged: the head"};
  if (it.file_bytes != bytes_)
    return Error{name + ": holds " + std::to_string(bytes_) + " of " + std::to_string(it.file_bytes) +
                 " bytes: it was cut short or written into"};
  const auto wrong = [&](const std::string& what) { return Error{name + ": damaged: " + what}; };
  std::uint64_t end = sizeof(IndexHead);
  for (const IndexSectionPlace& place : it.sections) {
    if (place.begin < end || place.begin % kIndexAlignment != 0 || place.begin > bytes_ ||
        place.bytes > bytes_ - place.begin)
      return wrong("the places of its sections");
    end = place.begin + place.bytes;
  }
  if (end != bytes_) return wrong("the end of its last section");
  constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
  const auto size = [&](IndexSection which) { return it.sections[which].bytes; };
  if (it.num_passages > kMost || it.num_terms > size(kTerms) || size(kLengths) != it.num_passages ||
      size(kPassages) != (it.num_passages + 1) * sizeof(std::uint64_t) ||
      size(kTerms) != (it.num_terms + 1) * sizeof(IndexTerm) || size(kBlocks) % sizeof(IndexBlock) != 0 ||
      size(kPostings) < kBlockPadding)
    return wrong("the sizes of its sections");
  if (it.words >= kIndexWords.size() || !(it.k1 >= 0) || !(it.b >= 0 && it.b <= 1)) return wrong("its settings");
  return Done{};
}

void IndexMapping::check_size() const {
  struct stat info{};
  if (::fstat(file_.get(), &info) == 0 && static_cast<std::uint64_t>(info.st_size) >= bytes_) return;
  throw DamagedIndex(path_.string() + ": was cut short while it was open");
}

void IndexMapping::damaged(const std::string& what) const { throw DamagedIndex(path_.string() + ": damaged: " + what); }

std::vector<float> lucene_inverse_norms(float k1, float b, std::uint64_t num_words, std::uint64_t num_passages) {
  const float mean =
      num_words > 0 ? static_cast<float>(static_cast<double>(num_words) / static_cast<double>(num_passages)) : 1.0f;
  std::vector<float> inverse;
  for (const int length : lucene_lengths())
    inverse.push_back(1.0f / (k1 * ((1 - b) + b * static_cast<float>(length) / mean)));
  return inverse;
}

}  // namespace carnot
