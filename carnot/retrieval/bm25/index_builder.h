// retrieval/bm25/index_builder.h -- builds an index file from a file of passages, of any size, in bounded memory.
//
// Passages are read once. Their texts go to the file that becomes the index; their words are collected until `memory`
// is full and then written as a sorted run; at the end the runs are merged. All of it lies in INDEX.partial, which also
// says how far it has come: a build that was stopped or killed continues after its last run. The index gets its name
// when it is complete and synced.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "carnot/core/base/fields.h"
#include "carnot/core/base/result.h"
#include "carnot/retrieval/bm25/index_file.h"

namespace carnot {

struct IndexBuildOptions {
  IndexWords words = IndexWords::English;
  double k1 = 0.9;
  double b = 0.4;
  std::size_t memory = std::size_t{1} << 30;  ///< bytes of collected words, about; more runs with less
  int threads = 1;                            ///< that split texts into words; the file does not depend on it
};

struct IndexProgress {
  std::uint64_t bytes = 0;      ///< of the source, read so far
  std::uint64_t all_bytes = 0;  ///< of the source
  std::uint64_t passages = 0;
  bool merging = false;  ///< all is read
};

/// Called now and then; false stops the build after it has written down how far it has come.
using OnIndexProgress = std::function<bool(const IndexProgress&)>;

/// Builds `index` from `source`, JSON lines (parse_passage_row()), plain or .xz; blank lines are passed over. Continues
/// what an earlier call left, if source and options are the same. The error names the lines that are not passages (the
/// first twenty), or the file that cannot be written, or says that the build was stopped.
Status build_index_file(const std::filesystem::path& source, const std::filesystem::path& index,
                        const IndexBuildOptions& options, const OnIndexProgress& on_progress = {});

/// The index of `file`: itself if its name ends in .bm25, else FILE.bm25.
std::filesystem::path index_path_of(const std::filesystem::path& file);

/// Opens `file` if its name ends in .bm25; for any other, a file of passages, opens FILE.bm25 next to it, which is
/// built first where it is missing or was built from another version of the file.
Result<std::shared_ptr<const Bm25File>> open_or_build_index(const std::filesystem::path& file,
                                                            const IndexBuildOptions& options,
                                                            const OnIndexProgress& on_progress = {});

}  // namespace carnot
