// retrieval/retriever/messages.h -- Search-R1's retrieval API (verl and A2TGPO use the same): its requests, its
// answers, and a server of it.
//
//   POST /retrieve   {"queries": ["who wrote ..."], "topk": 3, "return_scores": true}
//   answer           {"result": [[{"document": {"id": "7", "contents": "\"Title\"\ntext"}, "score": 12.3}]]}
//
// verl-agent's clients send one string under `query`.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/http/server.h"
#include "carnot/retrieval/retriever/retriever.h"

namespace carnot {

/// Of one request.
inline constexpr std::size_t kMostQueries = 4096;
inline constexpr int kMostPassages = 1000;

struct RetrieveRequest {
  std::vector<std::string> queries{};
  int topk = 0;
  bool return_scores = false;
};

/// Reads a request; `usual_topk` where it does not say, or null. The error says which key is wrong.
Result<RetrieveRequest> parse_retrieve_request(std::string_view body, int usual_topk);
std::string retrieve_request(std::span<const std::string> queries, int topk);

/// Without scores the documents alone, as Search-R1's server answers.
std::string retrieve_answer(std::span<const RetrievedPassages> found, bool with_scores);

/// Reads an answer with scores or without (then they are 0), for `num_queries` queries. A document may have `contents`,
/// or `text` and `title`. The error begins with `where`.
Result<std::vector<RetrievedPassages>> parse_retrieve_answer(std::string_view body, std::size_t num_queries,
                                                             const std::string& where);

/// POST /retrieve, and GET /health, which answers {"status": "ok"}. A request that cannot be read is
/// answered with status 422, a failure of the retriever with 500; either says why under `detail`, as FastAPI does.
/// `usual_topk`: passages for a request that does not say how many.
HttpHandler retriever_handler(std::shared_ptr<const Retriever> retriever, int usual_topk);

/// The body of an error, for HttpServerOptions::error_body too.
std::string retriever_error(const std::string& message);

}  // namespace carnot
