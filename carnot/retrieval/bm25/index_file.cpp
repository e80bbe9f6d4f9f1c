#include "carnot/retrieval/bm25/index_file.h"

#include <lzma.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "carnot/core/base/check.h"
#include "carnot/retrieval/bm25/analyzer.h"
#include "carnot/retrieval/bm25/index_mapping.h"

namespace carnot {

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
