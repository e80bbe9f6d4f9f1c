// serving/openai/chat_endpoint.h -- asks a model behind an OpenAI-compatible server for chat completions: patiently,
// not too often, within a budget. Requests are written and answers read here, too.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/core/base/result.h"
#include "carnot/core/data/message.h"
#include "carnot/http/client.h"
#include "carnot/serving/openai/answer.h"

namespace carnot {

struct ChatQuestion {
  std::string model{};
  std::vector<Message> messages{};
  std::vector<std::string> tools{};  ///< JSON texts (ToolDescription::json())
  double temperature = 1;
  double top_p = 1;
  int max_tokens = 1024;
  std::vector<std::string> stop{};
  std::optional<std::uint64_t> seed{};  ///< below 2^63
};

/// Its JSON. Bytes that are not UTF-8 become U+FFFD. `extra`: members that change it (RFC 7396), an object or empty.
std::string chat_request(const ChatQuestion& question, const std::string& extra = "");

struct ChatAnswer {
  std::string text{};  ///< empty if the model only calls tools
  std::vector<ToolCall> tool_calls{};
  std::string finish_reason{};  ///< "stop", "length", "tool_calls"; empty if the server does not say
  TokenUsage usage{};           ///< zeros where the server does not say
};

/// Reads the first choice. Members that are not used may be anything; `where` is for the error, which shows the body's
/// beginning.
Result<ChatAnswer> parse_chat_answer(std::string_view body, const std::string& where);

struct ChatEndpointOptions {
  std::string url{};           ///< what the API's paths are below: https://api.example.org/v1
  std::string model{};         ///< of every request
  std::string key_variable{};  ///< the environment variable that holds the key; empty: none is sent
  double request_timeout = 60;
  double timeout = 110;
  int retries = 4;
  double first_pause = 0.5;
  int concurrency = 8;
  std::int64_t max_requests = 1'000'000;

  void fields(FieldVisitor& visit);
};

/// There is no answer: the server failed, refused or was too slow, or the budget is spent. Never the policy's fault.
class ChatFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ChatEndpoint {
 public:
  /// Sends nothing yet. `section` is where the options are, for messages; no message shows the key.
  static Result<std::unique_ptr<ChatEndpoint>> open(const ChatEndpointOptions& options, const std::string& section);

  using Clock = std::chrono::steady_clock;

  /// What the model answers to `request`, the JSON of a chat completion. Asks again after a failed connection, a
  /// time-out, an answer that cannot be read, and status 408, 409, 425, 429 and 5xx, with pauses that double up to 30
  /// s, or that the server asks for (Retry-After; that pause holds for all callers). Throws ChatFailure, also where
  /// there is no answer by the deadline. Any thread.
  ChatAnswer exchange(const std::string& request, Clock::time_point deadline = Clock::time_point::max());

  /// The text of that answer.
  std::string ask(const std::string& request) { return exchange(request).text; }

  const Url& url() const { return url_; }

  /// Requests sent so far, those that failed included. Any thread.
  std::int64_t requests() const;

 private:
  struct Attempt;

  ChatEndpoint(const ChatEndpointOptions& options, std::string section, Url url, std::string key);
  bool take_turn(Clock::time_point deadline);
  void end_turn(Clock::duration pause_of_all);
  Attempt try_once(const std::string& request, Clock::time_point deadline);
  Attempt read(const Result<HttpAnswer>& answer) const;
  std::string without_key(std::string text) const;

  ChatEndpointOptions options_;
  std::string section_;
  Url url_;
  std::string key_;
  mutable std::mutex mutex_{};
  std::condition_variable changed_{};
  int under_way_ = 0;
  std::int64_t requests_ = 0;
  Clock::time_point open_from_{};  ///< a server asked all callers to wait until then
};

/// Seconds that a Retry-After header asks for, from `now` where it names a date (RFC 9110, 10.2.3); 0 where it cannot
/// be read.
double retry_after_seconds(const std::string& value, std::chrono::system_clock::time_point now);

}  // namespace carnot
