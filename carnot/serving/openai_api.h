// serving/openai_api.h -- OpenAI's API over one model: which path does what, from request to tokens to answer.
//
//   GET /health   GET /v1/models   GET /v1/models/NAME   POST /v1/chat/completions   POST /v1/completions
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "carnot/http/server.h"
#include "carnot/serving/loaded_model.h"
#include "carnot/serving/openai/answer.h"
#include "carnot/serving/text_service.h"

namespace carnot {

class OpenAiApi {
 public:
  /// Both must outlive the API and every answer. `name`: of the model, as requests may name it. `seed`: of the draws of
  /// requests without a seed.
  OpenAiApi(const LoadedModel& model, TextService& service, std::string name, std::uint64_t seed);
  ~OpenAiApi();
  OpenAiApi(const OpenAiApi&) = delete;
  OpenAiApi& operator=(const OpenAiApi&) = delete;

  /// Any thread.
  HttpReply answer(const HttpCall& call, const HttpConnection& connection);

 private:
  struct Prepared {
    OpenAiRequest request{};  ///< without its texts
    std::vector<TextJob> jobs{};
  };
  /// Reads and tokenizes it, or says what is wrong with it. `number`: of the request.
  std::variant<Prepared, HttpReply> prepared(const HttpCall& call, bool chat, std::uint64_t number) const;
  HttpReply generated(const HttpCall& call, const HttpConnection& connection, bool chat);

  const LoadedModel& model_;
  TextService& service_;
  std::string name_;
  std::uint64_t seed_;
  std::int64_t started_;  ///< seconds since 1970
  std::atomic<std::uint64_t> requests_ = 0;
  class LargeRequests;
  std::unique_ptr<LargeRequests> large_;
};

/// What to sample for a request, one job a prompt, or what is wrong with its fields. `longest`: positions of a text.
/// `seed`: of the draws, where the request has none.
std::variant<std::vector<TextJob>, std::vector<FieldProblem>> text_jobs(const OpenAiRequest& request,
                                                                        const LoadedModel& model, int longest,
                                                                        std::uint64_t seed);

}  // namespace carnot
