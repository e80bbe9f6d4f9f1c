#include "carnot/retrieval/retriever/retriever.h"

#include "carnot/core/base/file.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/retrieval/bm25/bm25.h"

namespace carnot {
namespace {

class IndexRetriever final : public Retriever {
 public:
  IndexRetriever(std::shared_ptr<const Bm25File> index, int threads)
      : index_(std::move(index)), pool_(std::make_unique<ThreadPool>(threads)) {}

  std::vector<RetrievedPassages> retrieve(std::span<const std::string> queries, int count,
                                          Tool::Deadline) const override {
    std::vector<RetrievedPassages> found(queries.size());
    try {
      pool_->run(static_cast<std::int64_t>(queries.size()), [&](std::int64_t i) {
        const auto place = static_cast<std::size_t>(i);
        for (const SearchHit& hit : index_->search(queries[place], count)) {
          const IndexedPassage passage = index_->passage(hit.document);
          found[place].push_back(
              {.id = std::string(passage.id), .contents = std::string(passage.contents), .score = hit.score});
        }
      });
    } catch (const DamagedIndex& damage) {
      throw RetrieverFailure(damage.what());
    }
    return found;
  }

 private:
  std::shared_ptr<const Bm25File> index_;
  std::unique_ptr<ThreadPool> pool_;
};

class MemoryRetriever final : public Retriever {
 public:
  MemoryRetriever(std::vector<PassageRow> passages, const IndexBuildOptions& options)
      : passages_(std::move(passages)),
        index_(texts(passages_), {.k1 = options.k1, .b = options.b, .arithmetic = Bm25Arithmetic::Lucene},
               analyzer_of(options.words)) {}

  std::vector<RetrievedPassages> retrieve(std::span<const std::string> queries, int count,
                                          Tool::Deadline) const override {
    std::vector<RetrievedPassages> found;
    for (const std::string& query : queries) {
      found.emplace_back();
      for (const SearchHit& hit : index_.search(query, count)) {
        const PassageRow& passage = passages_[static_cast<std::size_t>(hit.document)];
        found.back().push_back({.id = passage.id, .contents = passage.contents, .score = hit.score});
      }
    }
    return found;
  }

 private:
  static std::vector<std::string> texts(const std::vector<PassageRow>& passages) {
    std::vector<std::string> all;
    for (const PassageRow& passage : passages) all.push_back(passage.contents);
    return all;
  }

  std::vector<PassageRow> passages_;
  Bm25Index index_;
};

Result<std::vector<PassageRow>> read_passage_rows(const std::string& file) {
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_maybe_compressed(file));
  std::vector<PassageRow> passages;
  std::vector<std::string> problems;
  std::uint64_t number = 0;
  for (const std::string_view line : split_lines(text)) {
    ++number;
    if (trim(line).empty()) continue;
    auto row = parse_passage_row(line, number - 1, file + ":" + std::to_string(number));
    if (row)
      passages.push_back(std::move(row).value());
    else if (problems.size() < kMaxProblems)
      problems.push_back(row.error().message);
  }
  if (!problems.empty()) return join_errors(problems);
  if (passages.empty()) return Error{file + ": no passages"};
  return passages;
}

bool is_small(const std::filesystem::path& file) {
  constexpr std::uintmax_t kPacked = 4;  // .xz files expand to about so many times their size
  std::error_code reason;
  const std::uintmax_t bytes = std::filesystem::file_size(file, reason);
  return !reason && bytes <= (file.extension() == ".xz" ? kMostBytesInMemory / kPacked : kMostBytesInMemory);
}

}  // namespace

std::shared_ptr<const Retriever> make_index_retriever(std::shared_ptr<const Bm25File> index, int threads) {
  return std::make_shared<const IndexRetriever>(std::move(index), threads);
}

std::shared_ptr<const Retriever> make_memory_retriever(std::vector<PassageRow> passages,
                                                       const IndexBuildOptions& options) {
  return std::make_shared<const MemoryRetriever>(std::move(passages), options);
}

bool is_server(const std::string& where) { return where.starts_with("http://") || where.starts_with("https://"); }

Result<std::shared_ptr<const Retriever>> open_retriever(const std::string& where, const IndexBuildOptions& options,
                                                        const OnIndexProgress& on_progress) {
  if (is_server(where)) return make_retriever_client(where);
  if (!where.ends_with(".bm25") && is_small(where)) {
    CARNOT_ASSIGN_OR_RETURN(auto passages, read_passage_rows(where));
    return make_memory_retriever(std::move(passages), options);
  }
  CARNOT_ASSIGN_OR_RETURN(auto index, open_or_build_index(where, options, on_progress));
  return make_index_retriever(std::move(index), options.threads);
}

}  // namespace carnot
