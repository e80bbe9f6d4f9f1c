// retrieval/dense/nearest_graph.h -- the nearest rows of a file of vectors, approximately: a graph of neighbours (HNSW,
// Malkov and Yashunin 2018) by hnswlib, in a file next to the vectors.
//
// The graph lies in memory, vectors included. Rows are added in their order by one thread, and a row's number decides
// its layers, so the same vectors give the same graph, also where its build was stopped and continued. Its file is
// hnswlib's; FILE.json holds its size, its checksum and which vectors it was made of, because hnswlib follows what it
// reads without a look.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/retrieval/dense/vector_file.h"

namespace carnot {

class NearestGraph {
 public:
  /// Called now and then with the rows added so far; false stops. What was added is kept in FILE.partial.
  using OnRows = std::function<bool(std::int64_t rows)>;

  /// Reads `file`, or builds and writes it where it is missing or of other vectors. A build that was stopped continues
  /// where it was, one that was killed where it last wrote itself down: whenever it has grown by a quarter. The error
  /// says what is damaged or cannot be written, that another process builds it, or that it was stopped.
  static Result<std::shared_ptr<const NearestGraph>> open_or_build(const std::filesystem::path& file,
                                                                   std::shared_ptr<const VectorFile> vectors,
                                                                   const OnRows& on_rows = {});
  ~NearestGraph();
  NearestGraph(const NearestGraph&) = delete;
  NearestGraph& operator=(const NearestGraph&) = delete;

  /// About the `k` rows with the largest inner product, best first, scored as VectorFile::search() does. Throws
  /// DamagedIndex. Any thread. REQUIRES: the vectors' dimensions.
  std::vector<SearchHit> search(std::span<const float> query, int k) const;

 private:
  struct Graph;
  NearestGraph(std::shared_ptr<const VectorFile> vectors, std::unique_ptr<Graph> graph);

  std::shared_ptr<const VectorFile> vectors_;
  std::unique_ptr<Graph> graph_;
};

}  // namespace carnot
