// retrieval/bm25/index_mapping.h -- an index file in memory, as its sections. Offsets within them are checked by
// whoever follows them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "carnot/core/base/descriptor.h"
#include "carnot/core/base/result.h"
#include "carnot/retrieval/bm25/index_format.h"

namespace carnot {

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
  std::vector<float> inverse_norm_{};
};

/// For each length code, 1 / (k1 * (1 - b + b * length / mean length)), in Lucene's single precision.
std::vector<float> lucene_inverse_norms(float k1, float b, std::uint64_t num_words, std::uint64_t num_passages);

}  // namespace carnot
