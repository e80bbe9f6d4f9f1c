#include "carnot/retrieval/dense/dense_retriever.h"

#include <lzma.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "carnot/core/base/log.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/retrieval/dense/nearest_graph.h"
#include "carnot/retrieval/dense/vector_file.h"

namespace carnot {
namespace {

TextEncoderOpener& encoder_opener() {
  static TextEncoderOpener opener;
  return opener;
}

namespace fs = std::filesystem;

constexpr std::int64_t kEncodedTogether = 32;  // passages between two calls of on_progress: a second or two of work

std::uint64_t mark_of_vectors(const Bm25File& index, const TextEncoder& encoder, const std::string& passage_prefix) {
  const std::string text =
      index.source_name() + " " + encoder.mark + " " + std::to_string(encoder.dimensions) + " " + passage_prefix;
  return ::lzma_crc64(reinterpret_cast<const std::uint8_t*>(text.data()), text.size(), 0);
}

/// Who encodes: one at a time. A std::timed_mutex would do, but the thread sanitizer does not see it lock.
struct EncodingTurns {
  std::mutex mutex{};
  std::condition_variable ended{};
  bool taken = false;
};

/// A turn that was taken before the deadline, or none.
class EncodingTurn {
 public:
  EncodingTurn(EncodingTurns& turns, Tool::Deadline deadline) : turns_(turns) {
    std::unique_lock lock(turns_.mutex);
    taken_ = turns_.ended.wait_until(lock, deadline, [&] { return !turns_.taken; });
    if (taken_) turns_.taken = true;
  }
  ~EncodingTurn() {
    if (!taken_) return;
    const std::lock_guard lock(turns_.mutex);
    turns_.taken = false;
    turns_.ended.notify_one();
  }
  EncodingTurn(const EncodingTurn&) = delete;
  EncodingTurn& operator=(const EncodingTurn&) = delete;

  bool taken() const { return taken_; }

 private:
  EncodingTurns& turns_;
  bool taken_ = false;
};

class DenseRetriever final : public Retriever {
 public:
  DenseRetriever(std::shared_ptr<const Bm25File> index, std::shared_ptr<const VectorFile> vectors,
                 std::shared_ptr<const NearestGraph> graph, TextEncoder encoder, const DenseOptions& options)
      : index_(std::move(index)),
        vectors_(std::move(vectors)),
        graph_(std::move(graph)),
        encoder_(std::move(encoder)),
        query_prefix_(options.query_prefix),
        pool_(std::make_unique<ThreadPool>(options.threads)) {}

  std::vector<RetrievedPassages> retrieve(std::span<const std::string> queries, int count,
                                          Tool::Deadline deadline) const override {
    std::vector<RetrievedPassages> found(queries.size());
    try {
      const auto hits = search(encoded(queries, deadline), count);
      for (std::size_t i = 0; i < queries.size(); ++i)
        for (const SearchHit& hit : hits[i]) {
          const IndexedPassage passage = index_->passage(hit.document);
          found[i].push_back(
              {.id = std::string(passage.id), .contents = std::string(passage.contents), .score = hit.score});
        }
    } catch (const DamagedIndex& damage) {
      throw RetrieverFailure(damage.what());
    }
    return found;
  }

 private:
  std::vector<std::vector<float>> encoded(std::span<const std::string> queries, Tool::Deadline deadline) const {
    std::vector<std::string> texts;
    for (const std::string& query : queries) texts.push_back(query_prefix_ + query);
    const EncodingTurn turn(turns_, deadline);
    if (!turn.taken()) throw RetrieverFailure("the queries before it left no time to encode this one");
    return encoder_.encode(texts);
  }

  std::vector<std::vector<SearchHit>> search(const std::vector<std::vector<float>>& queries, int count) const {
    if (graph_ == nullptr) return vectors_->search(queries, count, *pool_);
    std::vector<std::vector<SearchHit>> hits(queries.size());
    pool_->run(std::ssize(queries), [&](std::int64_t i) {
      const auto place = static_cast<std::size_t>(i);
      hits[place] = graph_->search(queries[place], count);
    });
    return hits;
  }

  std::shared_ptr<const Bm25File> index_;
  std::shared_ptr<const VectorFile> vectors_;
  std::shared_ptr<const NearestGraph> graph_;  // none: every row is compared
  TextEncoder encoder_;
  std::string query_prefix_;
  std::unique_ptr<ThreadPool> pool_;
  mutable EncodingTurns turns_{};
};

/// Makes what is missing, and opens all of it. Throws DamagedIndex.
class DenseOpening {
 public:
  DenseOpening(std::shared_ptr<const Bm25File> index, const fs::path& index_file, TextEncoder encoder,
               const DenseOptions& options, const OnDenseProgress& on_progress)
      : index_(std::move(index)),
        vectors_file_(vectors_path_of(index_file)),
        graph_file_(graph_path_of(index_file)),
        encoder_(std::move(encoder)),
        options_(options),
        on_progress_(on_progress),
        mark_(mark_of_vectors(*index_, encoder_, options.passage_prefix)) {}

  Result<std::shared_ptr<const Retriever>> run() {
    if (!fs::exists(vectors_file_)) CARNOT_RETURN_IF_ERROR(encode_passages());
    CARNOT_ASSIGN_OR_RETURN(auto vectors, open_vectors());
    std::shared_ptr<const NearestGraph> graph;
    if (options_.approximate) {
      CARNOT_ASSIGN_OR_RETURN(
          graph, NearestGraph::open_or_build(graph_file_, vectors, [this](std::int64_t rows) {
            return goes_on({.passages = rows, .all_passages = index_->num_passages(), .graph = true});
          }));
    }
    return std::shared_ptr<const Retriever>(
        std::make_shared<const DenseRetriever>(index_, vectors, std::move(graph), encoder_, options_));
  }

 private:
  bool goes_on(const DenseProgress& progress) const { return !on_progress_ || on_progress_(progress); }

  Status encode_passages() {
    CARNOT_ASSIGN_OR_RETURN(auto writer, VectorFileWriter::open(vectors_file_, encoder_.dimensions, mark_));
    const std::int64_t count = index_->num_passages();
    if (writer.num_rows() > 0)
      log_info(vectors_file_.string() + ": continues after " + std::to_string(writer.num_rows()) + " passages");
    std::vector<std::string> texts;
    for (std::int64_t next = writer.num_rows(); next < count;) {
      texts.clear();
      for (const std::int64_t end = std::min(next + kEncodedTogether, count); next < end; ++next)
        texts.push_back(options_.passage_prefix + std::string(index_->passage(next).contents));
      for (const auto& vector : encoder_.encode(texts)) CARNOT_RETURN_IF_ERROR(writer.add(vector));
      if (goes_on({.passages = next, .all_passages = count})) continue;
      CARNOT_RETURN_IF_ERROR(writer.sync());
      return Error{vectors_file_.string() + ": stopped after " + std::to_string(next) +
                   " passages; the same call continues from there"};
    }
    return writer.finish();
  }

  Result<std::shared_ptr<const VectorFile>> open_vectors() const {
    const auto refused = [](const std::string& what) {
      return Error{what + "; remove the file, and it is made again"};
    };
    const std::string name = vectors_file_.string();
    auto vectors = VectorFile::open(vectors_file_);
    if (!vectors) return refused(vectors.error().message);
    if ((*vectors)->source_mark() != mark_)
      return refused(name + ": holds vectors of other passages, of another encoder or with another prefix");
    if ((*vectors)->num_rows() != index_->num_passages() || (*vectors)->dimensions() != encoder_.dimensions)
      return refused(name + ": holds " + std::to_string((*vectors)->num_rows()) + " vectors of " +
                     std::to_string((*vectors)->dimensions()) + " numbers for " +
                     std::to_string(index_->num_passages()) + " passages and " + std::to_string(encoder_.dimensions) +
                     " numbers");
    if (options_.verify)
      if (const Status status = (*vectors)->verify(); !status) return refused(status.error().message);
    return vectors;
  }

  std::shared_ptr<const Bm25File> index_;
  fs::path vectors_file_;
  fs::path graph_file_;
  TextEncoder encoder_;
  const DenseOptions& options_;
  const OnDenseProgress& on_progress_;
  std::uint64_t mark_;
};

}  // namespace

TextEncoderOpener set_text_encoder_opener(TextEncoderOpener opener) {
  return std::exchange(encoder_opener(), std::move(opener));
}

Result<TextEncoder> open_text_encoder(const std::string& model) {
  if (!encoder_opener()) return Error{model + ": this program computes no sentence encoders"};
  return encoder_opener()(model);
}

fs::path vectors_path_of(const fs::path& index_file) { return index_file.string() + ".vectors"; }
fs::path graph_path_of(const fs::path& index_file) { return index_file.string() + ".graph"; }

Result<std::shared_ptr<const Retriever>> open_dense_retriever(std::shared_ptr<const Bm25File> index,
                                                              const fs::path& index_file, TextEncoder encoder,
                                                              const DenseOptions& options,
                                                              const OnDenseProgress& on_progress) {
  try {
    return DenseOpening(std::move(index), index_file, std::move(encoder), options, on_progress).run();
  } catch (const DamagedIndex& damage) {
    return Error{damage.what()};
  }
}

}  // namespace carnot
