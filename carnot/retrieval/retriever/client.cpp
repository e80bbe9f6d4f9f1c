#include "carnot/http/client.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "carnot/retrieval/retriever/messages.h"
#include "carnot/retrieval/retriever/retriever.h"

namespace carnot {
namespace {

constexpr int kAttempts = 3;
constexpr std::chrono::milliseconds kFirstPause{200};  // before the second attempt; twice that before the third

class RetrieverClient final : public Retriever {
 public:
  explicit RetrieverClient(Url url) : url_(std::move(url)) {}

  std::vector<RetrievedPassages> retrieve(std::span<const std::string> queries, int count,
                                          Tool::Deadline deadline) const override {
    const std::string name = "retriever " + url_.shown();
    std::string problem;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      if (attempt > 0) {
        const auto pause = kFirstPause * attempt;
        if (std::chrono::steady_clock::now() + pause >= deadline) break;
        std::this_thread::sleep_for(pause);
      }
      const auto answer = ask(queries, count, deadline);
      if (!answer) {
        problem = answer.error().message;
      } else if (answer->status >= 500) {
        problem = "answered with status " + std::to_string(answer->status);
      } else if (!answer->is_success()) {
        throw RetrieverFailure(name + ": answered with status " + std::to_string(answer->status));
      } else {
        auto found = parse_retrieve_answer(answer->body, queries.size(), name);
        if (!found) throw RetrieverFailure(found.error().message);
        for (RetrievedPassages& passages : *found)
          passages.resize(std::min(passages.size(), static_cast<std::size_t>(count)));
        return std::move(found).value();
      }
    }
    throw RetrieverFailure(name + ": " + problem);
  }

 private:
  Result<HttpAnswer> ask(std::span<const std::string> queries, int count, Tool::Deadline deadline) const {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Error{"no answer in time"};
    return http_exchange({.method = "POST",
                          .url = url_,
                          .headers = {{"Content-Type", "application/json"}, {"Accept", "application/json"}},
                          .body = retrieve_request(queries, count)},
                         {.time = std::min(left, std::chrono::milliseconds(std::chrono::hours(1)))});
  }

  Url url_;
};

}  // namespace

Result<std::shared_ptr<const Retriever>> make_retriever_client(const std::string& url) {
  CARNOT_ASSIGN_OR_RETURN(auto parsed, parse_url(url));
  if (parsed.path == "/") parsed.path = "/retrieve";
  return std::shared_ptr<const Retriever>(std::make_shared<const RetrieverClient>(std::move(parsed)));
}

}  // namespace carnot
