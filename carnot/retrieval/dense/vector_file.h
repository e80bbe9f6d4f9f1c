// retrieval/dense/vector_file.h -- vectors of passages in a file, mapped into memory, and the nearest of them by inner
// product, exactly.
//
//   head (64 bytes): magic, version, byte order, rows, mark of the passages, dimensions, checksums of the rows and the
//   head rows of float32, one after the other
//
// A search reads every row once, for all of its queries together. A score is one sum of kernel/dispatch.h, so it
// depends on neither the other queries nor the threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "carnot/core/base/descriptor.h"
#include "carnot/core/base/result.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/retrieval/bm25/bm25.h"
#include "carnot/retrieval/bm25/build_folder.h"

namespace carnot {

/// In single precision. NaN becomes the lowest number, so that a damaged row is never found first.
float inner_product(std::span<const float> a, std::span<const float> b);

/// The order of search results: by score, equal ones by their number.
bool is_nearer(const SearchHit& a, const SearchHit& b);

class VectorFile {
 public:
  /// Maps the file. The error says that it is not such a file, of another version, cut short or damaged.
  static Result<std::shared_ptr<const VectorFile>> open(const std::filesystem::path& path);
  ~VectorFile();
  VectorFile(const VectorFile&) = delete;
  VectorFile& operator=(const VectorFile&) = delete;

  std::int64_t num_rows() const { return num_rows_; }
  int dimensions() const { return dimensions_; }
  /// Which passages it was made of, and how: what the writer was given.
  std::uint64_t source_mark() const { return source_mark_; }

  /// Throws DamagedIndex where the file was cut short since. REQUIRES: 0 <= number < num_rows().
  std::span<const float> row(std::int64_t number) const;

  /// For each query the `k` rows with the largest inner product, best first; equal ones in order of row. Throws
  /// DamagedIndex. Any thread. REQUIRES: each query has dimensions() numbers.
  std::vector<std::vector<SearchHit>> search(std::span<const std::vector<float>> queries, int k,
                                             ThreadPool& threads) const;

  /// Reads everything and compares the checksum.
  Status verify() const;

 private:
  explicit VectorFile(std::filesystem::path path) : path_(std::move(path)) {}
  Status map();
  void check_size() const;

  std::filesystem::path path_;
  Descriptor file_{};
  const char* start_ = nullptr;
  std::uint64_t bytes_ = 0;
  const float* rows_ = nullptr;
  std::int64_t num_rows_ = 0;
  int dimensions_ = 0;
  std::uint64_t source_mark_ = 0;
  std::uint64_t rows_checksum_ = 0;
};

/// Writes a file of vectors row by row, in FILE.partial (build_folder.h). The file gets its name when it is complete; a
/// writer that was stopped continues after the last row that sync() wrote down.
class VectorFileWriter {
 public:
  /// Goes on with what an earlier writer left. The error says that another process is writing it, or that there are
  /// rows of other dimensions or another mark: they may have taken hours, so they are not thrown away unasked.
  static Result<VectorFileWriter> open(const std::filesystem::path& file, int dimensions, std::uint64_t source_mark);

  std::int64_t num_rows() const { return num_rows_; }

  /// REQUIRES: a row of the file's dimensions.
  Status add(std::span<const float> row);
  /// Rows so far survive.
  Status sync();
  /// Gives the file its name, and removes the folder. REQUIRES: not called before; nothing is added afterwards.
  Status finish();

 private:
  explicit VectorFileWriter(BuildFolder folder) : folder_(std::move(folder)) {}
  std::filesystem::path rows_path() const { return folder_.path("vectors"); }

  BuildFolder folder_;
  std::filesystem::path file_{};
  Descriptor descriptor_{};
  int dimensions_ = 0;
  std::uint64_t source_mark_ = 0;
  std::int64_t num_rows_ = 0;
  std::uint64_t rows_checksum_ = 0;
  std::vector<float> waiting_{};
};

}  // namespace carnot
