#include "carnot/retrieval/bm25/index_file.h"

#include <lzma.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>

#include "carnot/core/base/check.h"
#include "carnot/core/base/file.h"
#include "carnot/retrieval/bm25/analyzer.h"
#include "carnot/retrieval/bm25/bm25.h"
#include "carnot/retrieval/bm25/index_mapping.h"
#include "carnot/retrieval/bm25/postings_block.h"

namespace carnot {

Result<std::unique_ptr<const IndexMapping>> IndexMapping::open(const std::filesystem::path& path) {
  std::unique_ptr<IndexMapping> mapping(new IndexMapping(path));
  CARNOT_RETURN_IF_ERROR(mapping->map());
  CARNOT_RETURN_IF_ERROR(mapping->check_head());
  const IndexHead& head = mapping->head();
  mapping->inverse_norm_ = lucene_inverse_norms(head.k1, head.b, head.mean_length());
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
  if (bytes_ < sizeof(IndexHead)) return Error{path_.string() + ": is not a BM25 index: it ends within the head"};
  void* start = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file_.get(), 0);
  if (start == MAP_FAILED) return system_error(path_, "cannot map into memory");
  start_ = static_cast<const char*>(start);
  return Done{};
}

Status IndexMapping::check_head() const {
  const IndexHead& it = head();
  const std::string name = path_.string();
  if (it.magic != kIndexMagic) return Error{name + ": is not a BM25 index"};
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

Bm25File::Bm25File(std::unique_ptr<const IndexMapping> mapping)
    : mapping_(std::move(mapping)), analyzer_(analyzer_of(static_cast<IndexWords>(mapping_->head().words))) {}

Bm25File::~Bm25File() = default;

Result<std::shared_ptr<const Bm25File>> Bm25File::open(const std::filesystem::path& path) {
  CARNOT_ASSIGN_OR_RETURN(auto mapping, IndexMapping::open(path));
  return std::shared_ptr<const Bm25File>(new Bm25File(std::move(mapping)));
}

std::vector<SearchHit> Bm25File::search(std::string_view query, int k) const {
  return search_index(*mapping_, analyzer_(query), k);
}

IndexedPassage Bm25File::passage(std::int64_t number) const {
  CARNOT_CHECK(number >= 0 && number < num_passages(), std::to_string(number));
  mapping_->check_size();
  const auto places = mapping_->records<std::uint64_t>(kPassages);
  const std::string_view texts = mapping_->section(kTexts);
  const std::uint64_t begin = places[static_cast<std::size_t>(number)];
  const std::uint64_t end = places[static_cast<std::size_t>(number) + 1];
  std::uint32_t id_length = 0;
  if (begin > end || end > texts.size() || end - begin < sizeof id_length) mapping_->damaged("the place of a passage");
  std::string_view passage = texts.substr(begin, end - begin);
  std::memcpy(&id_length, passage.data(), sizeof id_length);
  passage.remove_prefix(sizeof id_length);
  if (id_length > passage.size()) mapping_->damaged("the id of a passage");
  return {.id = passage.substr(0, id_length), .contents = passage.substr(id_length)};
}

Status Bm25File::verify() const {
  constexpr std::array<const char*, kNumIndexSections> kNames = {"texts", "passages", "lengths", "postings",
                                                                 "words", "terms",    "blocks"};
  mapping_->check_size();
  const char* end = mapping_->section(kTexts).data();
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const std::string_view bytes = mapping_->section(static_cast<IndexSection>(i));
    if (std::any_of(end, bytes.data(), [](char byte) { return byte != 0; }))
      return Error{mapping_->path().string() + ": damaged: before the section " + kNames[i]};
    end = bytes.data() + bytes.size();
    if (::lzma_crc64(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), 0) !=
        mapping_->head().sections[i].checksum)
      return Error{mapping_->path().string() + ": damaged: the section " + kNames[i]};
  }
  return Done{};
}

std::int64_t Bm25File::num_passages() const { return static_cast<std::int64_t>(mapping_->head().num_passages); }
std::int64_t Bm25File::num_terms() const { return static_cast<std::int64_t>(mapping_->head().num_terms); }
std::uint64_t Bm25File::bytes() const { return mapping_->head().file_bytes; }

bool Bm25File::is_from(std::uint64_t source_bytes, std::uint64_t source_mark) const {
  return mapping_->head().source_bytes == source_bytes && mapping_->head().source_mark == source_mark;
}

std::string Bm25File::source_name() const {
  const IndexHead& head = mapping_->head();
  return std::to_string(head.source_bytes) + " " + std::to_string(head.source_mark) + " " +
         std::to_string(head.num_passages);
}

bool Bm25File::has_settings(IndexWords words, double k1, double b) const {
  const IndexHead& head = mapping_->head();
  return head.words == static_cast<std::uint32_t>(words) && head.k1 == static_cast<float>(k1) &&
         head.b == static_cast<float>(b);
}

}  // namespace carnot
