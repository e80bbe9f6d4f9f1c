#include "carnot/retrieval/dense/nearest_graph.h"

// Its prefetching reads one neighbour past the end of a list; distances are ours anyway.
#define NO_MANUAL_VECTORIZATION
#include <hnswlib/hnswlib.h>
#include <lzma.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include "carnot/core/base/check.h"
#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/random.h"
#include "carnot/core/kernel/dispatch.h"
#include "carnot/retrieval/bm25/index_file.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using Layers = hnswlib::HierarchicalNSW<float>;

constexpr std::size_t kNeighbours = 16;         // of a row in each layer; twice that in the lowest
constexpr std::size_t kBuildCandidates = 200;   // looked at where a row is added
constexpr std::size_t kSearchCandidates = 200;  // looked at in a search, or as many as are requested
constexpr std::uint64_t kSeed = 100;            // of the rows' layers
constexpr std::int64_t kRowsBetweenCalls = 500;
constexpr std::int64_t kRowsBetweenSaves = 200'000;  // or a quarter of those that are there, if that is more
constexpr std::size_t kFileHeadBytes = 96;           // of hnswlib's file

float distance(const void* a, const void* b, const void* dimensions) {
  return 1 - kernel::kernel_table<float>().dot(*static_cast<const std::int64_t*>(dimensions),
                                               static_cast<const float*>(a), static_cast<const float*>(b));
}

/// Vectors by their inner product, with this processor's instructions.
class VectorSpace final : public hnswlib::SpaceInterface<float> {
 public:
  explicit VectorSpace(std::int64_t dimensions) : dimensions_(dimensions) {}
  std::size_t get_data_size() override { return static_cast<std::size_t>(dimensions_) * sizeof(float); }
  hnswlib::DISTFUNC<float> get_dist_func() override { return distance; }
  void* get_dist_func_param() override { return &dimensions_; }

 private:
  std::int64_t dimensions_;
};

/// A graph's file and the description next to it.
struct GraphFiles {
  fs::path graph{};
  fs::path description() const { return graph.string() + ".json"; }
};

struct GraphContents {
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;

  OrderedJson json() const { return {{"bytes", bytes}, {"checksum", checksum}}; }
};

Result<GraphContents> contents_of(const fs::path& file) {
  CARNOT_RETURN_IF_ERROR(open_regular_file(file));
  std::ifstream in(file, std::ios::binary);
  if (!in) return system_error(file, "cannot open");
  std::string piece(std::size_t{1} << 20, '\0');
  GraphContents contents;
  while (in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    const auto read = static_cast<std::size_t>(in.gcount());
    contents.checksum = ::lzma_crc64(reinterpret_cast<const std::uint8_t*>(piece.data()), read, contents.checksum);
    contents.bytes += read;
  }
  return contents;
}

OrderedJson made_of(const VectorFile& vectors) {
  return {{"version", 1},
          {"rows", vectors.num_rows()},
          {"dimensions", vectors.dimensions()},
          {"source_mark", vectors.source_mark()},
          {"neighbours", kNeighbours},
          {"candidates", kBuildCandidates}};
}

/// What saveIndex() writes: it does not say whether it could.
std::uint64_t saved_bytes(const Layers& layers) {
  std::uint64_t bytes = kFileHeadBytes + layers.cur_element_count * layers.size_data_per_element_;
  for (std::size_t i = 0; i < layers.cur_element_count; ++i)
    bytes += sizeof(unsigned) + static_cast<std::size_t>(layers.element_levels_[i]) * layers.size_links_per_element_;
  return bytes;
}

/// The description is written last: without it the file counts for nothing.
Status save_graph(Layers& layers, const VectorFile& vectors, const GraphFiles& files) {
  const fs::path written = files.graph.string() + ".new";
  layers.saveIndex(written.string());
  CARNOT_RETURN_IF_ERROR(sync_path(written));
  CARNOT_ASSIGN_OR_RETURN(const auto contents, contents_of(written));
  std::error_code ignored;
  if (contents.bytes != saved_bytes(layers)) {
    fs::remove(written, ignored);
    return Error{files.graph.string() + ": cannot be written as a whole; is the disk full?"};
  }
  fs::remove(files.description(), ignored);
  if (::rename(written.c_str(), files.graph.c_str()) != 0) return system_error(files.graph, "cannot write");
  const OrderedJson json = {{"made_of", made_of(vectors)}, {"contents", contents.json()}};
  return write_file_atomically(files.description(), json.dump(2) + "\n");
}

/// Null if there is no graph, or one of other vectors.
Result<std::unique_ptr<Layers>> load_graph(VectorSpace& space, const VectorFile& vectors, const GraphFiles& files) {
  if (!fs::exists(files.graph) || !fs::exists(files.description())) return std::unique_ptr<Layers>();
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_file(files.description()));
  CARNOT_ASSIGN_OR_RETURN(const auto known, parse_json_object<OrderedJson>(text, files.description().string()));
  if (known.value("made_of", OrderedJson()) != made_of(vectors)) {
    log_info(files.graph.string() + ": was built of other vectors; rebuilding");
    return std::unique_ptr<Layers>();
  }
  CARNOT_ASSIGN_OR_RETURN(const auto contents, contents_of(files.graph));
  if (known.value("contents", OrderedJson()) != contents.json())
    return Error{files.graph.string() + ": damaged: it is not what was written; remove it, and it is rebuilt"};
  auto layers =
      std::make_unique<Layers>(&space, files.graph.string(), false, static_cast<std::size_t>(vectors.num_rows()));
  layers->num_deleted_ = 0;  // which loading leaves as it finds it
  return layers;
}

}  // namespace

struct NearestGraph::Graph {
  explicit Graph(const VectorFile& vectors) : space(vectors.dimensions()) {}

  Status open_or_build(const fs::path& file, const VectorFile& vectors, const OnRows& on_rows) {
    CARNOT_ASSIGN_OR_RETURN(layers, load_graph(space, vectors, {.graph = file}));
    return layers != nullptr ? Status(Done{}) : build(file, vectors, on_rows);
  }

  Status build(const fs::path& file, const VectorFile& vectors, const OnRows& on_rows) {
    CARNOT_ASSIGN_OR_RETURN(auto folder, BuildFolder::open(file));
    const GraphFiles partial{.graph = folder.path("graph")};
    CARNOT_ASSIGN_OR_RETURN(layers, load_graph(space, vectors, partial));
    if (layers == nullptr)
      layers =
          std::make_unique<Layers>(&space, static_cast<std::size_t>(vectors.num_rows()), kNeighbours, kBuildCandidates);
    const auto num_added = [&] { return static_cast<std::int64_t>(layers->cur_element_count); };
    std::int64_t saved = num_added();
    if (saved > 0) log_info(file.string() + ": continues after " + std::to_string(saved) + " rows");
    while (num_added() < vectors.num_rows()) {
      const std::int64_t row = num_added();
      const std::uint64_t seed = derive_seed(kSeed, "layers", static_cast<std::uint64_t>(row));
      layers->level_generator_.seed(static_cast<std::uint32_t>(seed));
      layers->addPoint(vectors.row(row).data(), static_cast<hnswlib::labeltype>(row));
      const bool stops = num_added() % kRowsBetweenCalls == 0 && on_rows && !on_rows(num_added());
      if (stops || num_added() - saved >= std::max(kRowsBetweenSaves, saved / 4)) {
        CARNOT_RETURN_IF_ERROR(save_graph(*layers, vectors, partial));
        saved = num_added();
      }
      if (stops)
        return Error{file.string() + ": stopped after " + std::to_string(saved) +
                     " rows; the same call continues from there"};
    }
    CARNOT_RETURN_IF_ERROR(save_graph(*layers, vectors, {.graph = file}));
    folder.remove();
    return Done{};
  }

  VectorSpace space;
  std::unique_ptr<Layers> layers{};
};

NearestGraph::NearestGraph(std::shared_ptr<const VectorFile> vectors, std::unique_ptr<Graph> graph)
    : vectors_(std::move(vectors)), graph_(std::move(graph)) {
  graph_->layers->setEf(kSearchCandidates);
}

NearestGraph::~NearestGraph() = default;

Result<std::shared_ptr<const NearestGraph>> NearestGraph::open_or_build(const fs::path& file,
                                                                        std::shared_ptr<const VectorFile> vectors,
                                                                        const OnRows& on_rows) {
  auto graph = std::make_unique<Graph>(*vectors);
  try {
    CARNOT_RETURN_IF_ERROR(graph->open_or_build(file, *vectors, on_rows));
  } catch (const DamagedIndex& damage) {
    return Error{damage.what()};
  } catch (const std::runtime_error& problem) {  // hnswlib's: no memory
    return Error{file.string() + ": " + problem.what()};
  }
  return std::shared_ptr<const NearestGraph>(new NearestGraph(std::move(vectors), std::move(graph)));
}

std::vector<SearchHit> NearestGraph::search(std::span<const float> query, int k) const {
  CARNOT_CHECK_EQ(query.size(), static_cast<std::size_t>(vectors_->dimensions()));
  CARNOT_CHECK_GE(k, 0);
  if (k == 0) return {};
  auto found = graph_->layers->searchKnn(query.data(), static_cast<std::size_t>(k));
  std::vector<SearchHit> hits;
  for (; !found.empty(); found.pop()) {
    const auto row = static_cast<std::int64_t>(found.top().second);
    hits.push_back({.document = static_cast<int>(row), .score = inner_product(query, vectors_->row(row))});
  }
  std::ranges::sort(hits, is_nearer);
  return hits;
}

}  // namespace carnot
