// retrieval/retriever/retriever.h -- finds passages for queries: over an index of this process, or a server's.
#pragma once

#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/env/tool.h"
#include "carnot/retrieval/bm25/index_builder.h"
#include "carnot/retrieval/bm25/passage_source.h"

namespace carnot {

struct RetrievedPassage {
  std::string id{};
  std::string contents{};  ///< in Search-R1's corpora: the title in quotes, a line break, the text
  double score = 0;

  bool operator==(const RetrievedPassage&) const = default;
};

/// What was found for one query, best first.
using RetrievedPassages = std::vector<RetrievedPassage>;

/// The retriever is away, answered nonsense, or its index is damaged. Never the policy's fault: the trajectory is an
/// infrastructure failure.
class RetrieverFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Retriever {
 public:
  virtual ~Retriever() = default;

  /// The best `count` passages for each query, in the order of the queries. Throws RetrieverFailure, also where there
  /// is no answer by the deadline. Any thread.
  virtual std::vector<RetrievedPassages> retrieve(std::span<const std::string> queries, int count,
                                                  Tool::Deadline deadline) const = 0;
};

/// Over an index file; `threads` share the queries of one call.
std::shared_ptr<const Retriever> make_index_retriever(std::shared_ptr<const Bm25File> index, int threads = 1);

/// Over passages in memory, with the same scores.
std::shared_ptr<const Retriever> make_memory_retriever(std::vector<PassageRow> passages,
                                                       const IndexBuildOptions& options = {});

/// Asks a server of Search-R1's API at `url`; `/retrieve` is added where the address has no path. A request that gets
/// no answer or one of status 500 to 599 is made again, three times in all. The error says what is wrong with the
/// address.
Result<std::shared_ptr<const Retriever>> make_retriever_client(const std::string& url);

/// Whether `where` begins with http:// or https://.
bool is_server(const std::string& where);

/// Files of passages up to this size are indexed in memory.
inline constexpr std::uintmax_t kMostBytesInMemory = std::uintmax_t{32} << 20;

/// `where`: http:// or https:// is a server; a name in .bm25 an index file; any other a file of passages, whose index
/// is made in memory where it is small and as FILE.bm25 otherwise (open_or_build_index).
Result<std::shared_ptr<const Retriever>> open_retriever(const std::string& where, const IndexBuildOptions& options = {},
                                                        const OnIndexProgress& on_progress = {});

}  // namespace carnot
