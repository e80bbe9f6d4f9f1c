#include "carnot/serving/openai/chat_endpoint.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <optional>
#include <thread>

#include "carnot/core/base/json.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/printable.h"
#include "carnot/core/base/process_environment.h"
#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

constexpr double kLongestPause = 30;
constexpr std::size_t kShownBytes = 300;
constexpr std::size_t kMaxAnswerBytes = std::size_t{4} << 20;

std::chrono::steady_clock::duration seconds(double number) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(number));
}

bool may_pass(int status) {
  return status == 408 || status == 409 || status == 425 || status == 429 || (status >= 500 && status < 600);
}

Json message_json(const Message& message) {
  Json json{{"role", message.role}, {"content", message.content}};
  if (!message.tool_call_id.empty()) json["tool_call_id"] = message.tool_call_id;
  for (const ToolCall& call : message.tool_calls) {
    Json one{{"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
    if (!call.id.empty()) one["id"] = call.id;
    json["tool_calls"].push_back(std::move(one));
  }
  return json;
}

/// Null if there is no member of that name.
const Json* member_of(const Json& value, const char* name) {
  if (!value.is_object()) return nullptr;
  const auto found = value.find(name);
  return found == value.end() ? nullptr : &*found;
}

std::string text_of(const Json& value, const char* name) {
  const Json* text = member_of(value, name);
  return text != nullptr && text->is_string() ? text->get<std::string>() : "";
}

std::int64_t count_of(const Json* usage, const char* name) {
  const Json* count = usage == nullptr ? nullptr : member_of(*usage, name);
  if (count == nullptr || !count->is_number_integer()) return 0;
  constexpr std::int64_t kMost = 1'000'000'000;
  if (count->is_number_unsigned() && count->get<std::uint64_t>() > static_cast<std::uint64_t>(kMost)) return kMost;
  return std::clamp<std::int64_t>(count->get<std::int64_t>(), 0, kMost);
}

/// Arguments are JSON in a string; some servers send the object itself.
std::string arguments_of(const Json& function) {
  const Json* arguments = member_of(function, "arguments");
  if (arguments == nullptr || arguments->is_null()) return "{}";
  if (arguments->is_string()) return arguments->get<std::string>();
  return arguments->dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<ToolCall> calls_of(const Json& message) {
  std::vector<ToolCall> calls;
  const Json* list = member_of(message, "tool_calls");
  if (list == nullptr || !list->is_array()) return calls;
  for (const Json& call : *list)
    if (const Json* function = member_of(call, "function"); function != nullptr)
      calls.push_back(
          {.name = text_of(*function, "name"), .arguments = arguments_of(*function), .id = text_of(call, "id")});
  return calls;
}

}  // namespace

std::string chat_request(const ChatQuestion& question, const std::string& extra) {
  Json json{{"model", question.model},
            {"messages", Json::array()},
            {"temperature", question.temperature},
            {"top_p", question.top_p},
            {"max_tokens", question.max_tokens}};
  for (const Message& message : question.messages) json["messages"].push_back(message_json(message));
  for (const std::string& tool : question.tools) json["tools"].push_back(parse_json(tool, "a tool").value());
  if (!question.stop.empty()) json["stop"] = question.stop;
  if (question.seed) json["seed"] = *question.seed;
  if (!extra.empty()) json.merge_patch(parse_json_object(extra, "extra").value());
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<ChatAnswer> parse_chat_answer(std::string_view body, const std::string& where) {
  CARNOT_ASSIGN_OR_RETURN(const auto parsed, parse_json(body, where));
  const Json* choices = member_of(parsed, "choices");
  const Json* choice = choices != nullptr && choices->is_array() && !choices->empty() ? &choices->front() : nullptr;
  const Json* message = choice == nullptr ? nullptr : member_of(*choice, "message");
  const Json* content = message == nullptr ? nullptr : member_of(*message, "content");
  ChatAnswer answer;
  if (message != nullptr) answer.tool_calls = calls_of(*message);
  const bool is_text = content != nullptr && content->is_string();
  if (!is_text && answer.tool_calls.empty())
    return Error{where + ": expected a string as choices[0].message.content, found " +
                 printable_line(body.substr(0, kShownBytes))};
  if (is_text) answer.text = content->get<std::string>();
  answer.finish_reason = text_of(*choice, "finish_reason");
  const Json* usage = member_of(parsed, "usage");
  answer.usage = {.prompt = count_of(usage, "prompt_tokens"), .completion = count_of(usage, "completion_tokens")};
  return answer;
}

struct ChatEndpoint::Attempt {
  std::optional<ChatAnswer> answer{};
  std::string problem{};   ///< where there is no answer
  bool again = false;      ///< another try may succeed
  double asked_pause = 0;  ///< seconds, by the server
};

Result<std::unique_ptr<ChatEndpoint>> ChatEndpoint::open(const ChatEndpointOptions& options,
                                                         const std::string& section) {
  if (options.url.empty())
    return Error{section +
                 "url: empty; expected the address of an OpenAI-compatible API, like http://localhost:8000/v1"};
  const auto base = parse_url(options.url);
  if (!base) return Error{section + "url: " + base.error().message};
  if (options.model.empty()) return Error{section + "model: empty; expected a model that the server knows"};
  CARNOT_ASSIGN_OR_RETURN(auto key, key_of_variable(options.key_variable, section + "key_variable"));
  return std::unique_ptr<ChatEndpoint>(
      new ChatEndpoint(options, section, base->append("chat/completions"), std::move(key)));
}

ChatEndpoint::ChatEndpoint(const ChatEndpointOptions& options, std::string section, Url url, std::string key)
    : options_(options), section_(std::move(section)), url_(std::move(url)), key_(std::move(key)) {}

ChatAnswer ChatEndpoint::exchange(const std::string& request, Clock::time_point latest) {
  const Clock::time_point deadline = std::min(latest, Clock::now() + seconds(options_.timeout));
  double pause = options_.first_pause;
  for (int tries = 1;; ++tries) {
    Attempt attempt = try_once(request, deadline);
    if (attempt.answer) return std::move(*attempt.answer);
    const double wait = std::max(pause, attempt.asked_pause);
    const bool in_time = Clock::now() + seconds(wait) < deadline;
    if (!attempt.again || tries > options_.retries || !in_time) {
      std::string message = section_ + "url: " + without_key(std::move(attempt.problem));
      if (tries > 1) message += ", after " + std::to_string(tries) + " requests";
      if (attempt.again && !in_time) message += "; the next one would come too late (" + section_ + "timeout)";
      throw ChatFailure(message);
    }
    std::this_thread::sleep_for(seconds(wait));
    pause = std::min(2 * pause, kLongestPause);
  }
}

ChatEndpoint::Attempt ChatEndpoint::try_once(const std::string& request, Clock::time_point deadline) {
  if (!take_turn(deadline)) return {.problem = "no turn to ask within " + section_ + "timeout"};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      std::min(seconds(options_.request_timeout), deadline - Clock::now()));
  HttpRequest http{.method = "POST",
                   .url = url_,
                   .headers = {{"Content-Type", "application/json"}, {"Accept", "application/json"}},
                   .body = request};
  if (!key_.empty()) http.headers.push_back({"Authorization", "Bearer " + key_});
  Attempt attempt = read(
      http_exchange(http, {.time = std::max(left, std::chrono::milliseconds(1)), .answer_bytes = kMaxAnswerBytes}));
  end_turn(seconds(attempt.asked_pause));
  return attempt;
}

ChatEndpoint::Attempt ChatEndpoint::read(const Result<HttpAnswer>& answer) const {
  if (!answer) return {.problem = answer.error().message, .again = true};
  const std::string place = "POST " + url_.shown();
  if (!answer->is_success()) {
    const std::string* asked = find_header(answer->headers, "Retry-After");
    return {.problem = place + ": status " + std::to_string(answer->status) + ": " +
                       printable_line(answer->body.substr(0, kShownBytes)),
            .again = may_pass(answer->status),
            .asked_pause = asked == nullptr || !may_pass(answer->status)
                               ? 0
                               : retry_after_seconds(*asked, std::chrono::system_clock::now())};
  }
  auto parsed = parse_chat_answer(answer->body, place);
  if (!parsed) return {.problem = parsed.error().message, .again = true};
  return {.answer = std::move(parsed).value()};
}

std::int64_t ChatEndpoint::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

bool ChatEndpoint::take_turn(Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  while (under_way_ >= options_.concurrency || Clock::now() < open_from_) {
    const Clock::time_point next = under_way_ >= options_.concurrency ? deadline : std::min(open_from_, deadline);
    if (changed_.wait_until(lock, next) == std::cv_status::timeout && Clock::now() >= deadline) return false;
  }
  if (requests_ == options_.max_requests) {
    throw ChatFailure(section_ + "max_requests: the budget of " + std::to_string(options_.max_requests) +
                      " requests is spent");
  }
  if (++requests_ == options_.max_requests)
    log_warning(section_ + "max_requests: the last of " + std::to_string(options_.max_requests) +
                " requests; what needs another one will fail");
  ++under_way_;
  return true;
}

void ChatEndpoint::end_turn(Clock::duration pause_of_all) {
  {
    const std::lock_guard lock(mutex_);
    --under_way_;
    if (pause_of_all > Clock::duration::zero()) open_from_ = std::max(open_from_, Clock::now() + pause_of_all);
  }
  changed_.notify_all();
}

std::string ChatEndpoint::without_key(std::string text) const {
  if (key_.empty()) return text;
  for (std::size_t at = text.find(key_); at != std::string::npos; at = text.find(key_))
    text.replace(at, key_.size(), "***");
  return text;
}

double retry_after_seconds(const std::string& value, std::chrono::system_clock::time_point now) {
  constexpr double kLongest = 1e6;
  const std::string_view text = trim(value);
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc{} && end == text.data() + text.size()) return number > 0 ? std::min(number, kLongest) : 0;
  std::tm date{};
  const std::string copy(text);
  const char* rest = ::strptime(copy.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date);
  if (rest == nullptr || *rest != '\0') return 0;
  const auto then = std::chrono::system_clock::from_time_t(::timegm(&date));
  return std::clamp(std::chrono::duration<double>(then - now).count(), 0.0, kLongest);
}

void ChatEndpointOptions::fields(FieldVisitor& visit) {
  const Limits above_zero{.low = 0, .high = 1e6, .open_low = true};
  visit.field("url", url, "an OpenAI-compatible API: requests go to URL/chat/completions");
  visit.field("model", model, "the model that it is asked for");
  visit.field("key_variable", key_variable, "name of the environment variable that holds the key; empty: no key");
  visit.field("request_timeout", request_timeout, "seconds that one request may take", above_zero);
  visit.field("timeout", timeout,
              "seconds that an answer may take, retries included; below rollout.environment_timeout", above_zero);
  visit.field("retries", retries, "requests after one that failed", between(0, 100));
  visit.field("first_pause", first_pause, "seconds before the first retry; doubled for each further one", above_zero);
  visit.field("concurrency", concurrency, "requests at a time", between(1, 1024));
  visit.field("max_requests", max_requests, "requests that a run may send; afterwards each is a failure",
              between(1, 100'000'000));
}

}  // namespace carnot
