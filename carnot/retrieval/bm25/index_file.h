// retrieval/bm25/index_file.h -- a BM25 index in a file, mapped into memory: built once, opened at once, of any size.
//
// Scores are Lucene's (bm25.h, Bm25Arithmetic::Lucene), equal to those of Bm25Index over the same texts. A search reads
// only the postings that can still change the best `k`: in windows of documents, words whose bounds together cannot
// beat the k-th best so far are looked up for the few documents that the other words leave (MaxScore of Turtle and
// Flood 1995, with bounds per block as in Ding and Suel 2011).
//
// What the file says is compared with its size before it is followed, so a damaged file is an error and never a crash.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/retrieval/bm25/analyzer.h"
#include "carnot/retrieval/bm25/bm25.h"

namespace carnot {

class IndexMapping;

/// The file does not hold what it says: it was cut short or damaged after it was opened.
class DamagedIndex : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct IndexedPassage {
  std::string_view id{};  ///< both are views into the file
  std::string_view contents{};
};

class Bm25File {
 public:
  /// Maps the file. The error says that it is not an index, of another version, cut short or damaged. Takes time for
  /// the head only; sections are checked as they are read, and as a whole by verify().
  static Result<std::shared_ptr<const Bm25File>> open(const std::filesystem::path& path);
  ~Bm25File();
  Bm25File(const Bm25File&) = delete;
  Bm25File& operator=(const Bm25File&) = delete;

  /// The `k` best passages that share a word with the query, best first; equal scores in order of passage. Throws
  /// DamagedIndex. Any thread.
  std::vector<SearchHit> search(std::string_view query, int k) const;

  /// Throws DamagedIndex. REQUIRES: 0 <= number < num_passages().
  IndexedPassage passage(std::int64_t number) const;

  /// Reads everything and compares the checksums; the error names the section that differs.
  Status verify() const;

  std::int64_t num_passages() const;
  std::int64_t num_terms() const;
  std::uint64_t bytes() const;

  /// Whether it was built from a file of that size with that beginning and end (index_builder.h).
  bool is_from(std::uint64_t source_bytes, std::uint64_t source_mark) const;
  /// Identifies the passages: size, beginning and end of that file, and how many passages it had.
  std::string source_name() const;
  bool has_settings(IndexWords words, double k1, double b) const;

 private:
  explicit Bm25File(std::unique_ptr<const IndexMapping> mapping);

  std::unique_ptr<const IndexMapping> mapping_;
  Analyzer analyzer_;
};

}  // namespace carnot
