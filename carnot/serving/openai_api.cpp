#include "carnot/serving/openai_api.h"

#include <malloc.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "carnot/core/base/random.h"
#include "carnot/core/base/utf8.h"

namespace carnot {
namespace {

constexpr std::chrono::milliseconds kPatience{100};  // between two looks at whether the client is still there
constexpr double kImpossible = -9999;                // OpenAI's word for a log-probability of minus infinity
constexpr int kUsualCompletionTokens = 16;
constexpr std::size_t kLargeRequest = std::size_t{1} << 20;  // bytes

using Problems = std::vector<FieldProblem>;

HttpReply refused(int status, const std::string& message, const std::string& param = "") {
  return {.status = status, .body = error_answer(status, message, param)};
}

std::int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Formats know one system message; some clients send several.
std::vector<Message> with_one_system_message(std::vector<Message> messages) {
  while (messages.size() > 1 && messages[0].role == "system" && messages[1].role == "system") {
    messages[0].content += "\n\n" + messages[1].content;
    messages.erase(messages.begin() + 1);
  }
  return messages;
}

Result<std::vector<TokenId>> chat_prompt(const OpenAiRequest& request, const LoadedModel& model) {
  if (!model.chat)
    return Error{(model.chat_problem.empty() ? "the model has no chat format that is known" : model.chat_problem) +
                 "; expected /v1/completions, or carnot serve --chat"};
  const std::vector<Message> messages = with_one_system_message(request.messages);
  CARNOT_RETURN_IF_ERROR(model.chat->check_writable(messages, request.tools));
  CARNOT_ASSIGN_OR_RETURN(auto opening, model.chat->try_render_opening(messages, "", request.tools));
  return std::move(opening.tokens);
}

Result<std::vector<TokenId>> completion_prompt(const RequestPrompt& prompt, const LoadedModel& model) {
  if (const auto* text = std::get_if<std::string>(&prompt)) return model.tokenizer->try_encode_from_begin(*text);
  const auto& ids = std::get<std::vector<TokenId>>(prompt);
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] >= model.model->config().vocab_size)
      return Error{"token " + std::to_string(i) + " is " + std::to_string(ids[i]) + "; expected ids below " +
                   std::to_string(model.model->config().vocab_size)};
  return ids;
}

double finite(float log_prob) { return std::isfinite(log_prob) ? static_cast<double>(log_prob) : kImpossible; }

const char* word_of(Finish finish) { return finish == Finish::Length ? "length" : "stop"; }

/// One request that is being answered.
class Answer {
 public:
  Answer(OpenAiRequest request, const LoadedModel& model, AnswerHead head, std::vector<std::vector<TokenId>> prompts,
         std::unique_ptr<TextService::Order> order, const HttpConnection& connection)
      : request_(std::move(request)),
        model_(model),
        head_(std::move(head)),
        prompts_(std::move(prompts)),
        order_(std::move(order)),
        connection_(connection) {
    for (const auto& prompt : prompts_) usage_.prompt += static_cast<std::int64_t>(prompt.size());
  }

  /// The whole answer; nothing if the client has left.
  std::optional<std::string> whole() {
    std::vector<AnsweredChoice> choices;
    while (!order_->is_finished()) {
      for (TextPiece& piece : order_->take(kPatience)) choices.push_back(choice_of(std::move(piece)));
      if (!connection_.is_open()) return std::nullopt;
    }
    for (AnsweredChoice& choice : choices) read_calls(choice);
    return whole_answer(request_, head_, choices, usage_, shared_prompt());
  }

  /// The next events of a stream; nothing at its end, or where the client has left.
  std::optional<std::string> next_events() {
    if (!opened_) return open();
    if (ended_) return std::nullopt;
    std::string events;
    try {
      while (events.empty() && !order_->is_finished()) {
        for (TextPiece& piece : order_->take(kPatience)) events += events_of(std::move(piece));
        if (events.empty() && !connection_.is_open()) return std::nullopt;
      }
    } catch (const std::runtime_error& error) {
      ended_ = true;
      return events + error_event(500, error.what());
    }
    if (order_->is_finished()) {
      ended_ = true;
      if (request_.include_usage) events += usage_event(request_, head_, usage_);
      events += kLastEvent;
    }
    return events;
  }

 private:
  std::span<const TokenId> shared_prompt() const {
    return prompts_.size() == 1 ? std::span<const TokenId>(prompts_[0]) : std::span<const TokenId>();
  }

  std::string open() {
    opened_ = true;
    std::string events;
    if (!request_.chat) return ": streaming\n\n";  // a comment; the headers are sent with it
    for (int choice = 0; choice < request_.samples; ++choice)
      events += opening_event(request_, head_, choice, choice == 0 ? shared_prompt() : std::span<const TokenId>());
    return events;
  }

  NamedLogProb named(TokenId token, float log_prob) const {
    return {.bytes = std::string(model_.tokenizer->bytes_of(token)), .log_prob = finite(log_prob)};
  }

  AnsweredChoice choice_of(TextPiece piece) {
    AnsweredChoice choice{.index = piece.text_number, .text = std::move(piece.text)};
    usage_.completion += static_cast<std::int64_t>(piece.tokens.size());
    if (piece.finish) choice.finish_reason = word_of(*piece.finish);
    if (!request_.chat) choice.prompt = prompts_[static_cast<std::size_t>(piece.text_number / request_.samples)];
    if (!request_.likeliest && !request_.return_token_ids) return choice;
    for (const ServedToken& token : piece.tokens) {
      AnsweredToken answered{.id = token.draw.token, .drawn = named(token.draw.token, token.draw.log_prob)};
      for (const TokenLogProb& likely : token.likeliest)
        if (model_.tokenizer->has(likely.token)) answered.likeliest.push_back(named(likely.token, likely.log_prob));
      choice.tokens.push_back(std::move(answered));
    }
    return choice;
  }

  /// Calls in the text become calls of the choice, where tools were offered.
  void read_calls(AnsweredChoice& choice) const {
    if (request_.tools.empty()) return;
    PolicyResponse response = model_.chat->parse_response(choice.text, request_.tools);
    if (response.tool_calls.empty()) return;
    choice.text = std::string(model_.chat->text_beside_calls(choice.text));
    choice.tool_calls = std::move(response.tool_calls);
    for (std::size_t i = 0; i < choice.tool_calls.size(); ++i)
      if (std::string& id = choice.tool_calls[i].id; id.empty())
        id = "call_" + head_.id.substr(head_.id.find('-') + 1) + "_" + std::to_string(choice.index) + "_" +
             std::to_string(i);
    if (choice.finish_reason == "stop") choice.finish_reason = "tool_calls";
  }

  std::string events_of(TextPiece piece) {
    AnsweredChoice choice = choice_of(std::move(piece));
    // What may become a call is sent once it is whole.
    if (!request_.tools.empty()) {
      AnsweredChoice& held = held_[choice.index];
      held.index = choice.index;
      held.text += choice.text;
      held.tokens.insert(held.tokens.end(), choice.tokens.begin(), choice.tokens.end());
      held.finish_reason = choice.finish_reason;
      if (held.finish_reason.empty()) return "";
      choice = std::move(held);
      read_calls(choice);
    }
    Sent& sent = sent_[choice.index];
    choice.text_offset = sent.characters;
    if (std::exchange(sent.prompt, true)) choice.prompt.clear();
    for (const AnsweredToken& token : choice.tokens) sent.characters += count_characters(token.drawn.bytes);
    const std::string finish = std::exchange(choice.finish_reason, "");
    std::string events;
    if (!choice.text.empty() || !choice.tokens.empty() || !choice.tool_calls.empty())
      events += choice_event(request_, head_, choice);
    if (!finish.empty()) events += choice_event(request_, head_, {.index = choice.index, .finish_reason = finish});
    return events;
  }

  /// Of a streamed choice.
  struct Sent {
    bool prompt = false;
    std::size_t characters = 0;
  };

  OpenAiRequest request_;
  const LoadedModel& model_;
  AnswerHead head_;
  std::vector<std::vector<TokenId>> prompts_;
  std::unique_ptr<TextService::Order> order_;
  const HttpConnection& connection_;
  TokenUsage usage_{};
  std::map<int, Sent> sent_;
  std::map<int, AnsweredChoice> held_;
  bool opened_ = false;
  bool ended_ = false;
};

std::string hexadecimal(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

}  // namespace

std::variant<std::vector<TextJob>, Problems> text_jobs(const OpenAiRequest& request, const LoadedModel& model,
                                                       int longest, std::uint64_t seed) {
  Problems problems;
  std::vector<TextJob> jobs;
  const SamplingOptions usual = folder_sampling(model).value_or(SamplingOptions{});
  const auto add = [&](const std::string& field, Result<std::vector<TokenId>> prompt) {
    if (!prompt) return problems.push_back({field, prompt.error().message});
    const int size = static_cast<int>(prompt->size());
    if (size == 0) return problems.push_back({field, "has no token"});
    if (size >= longest)
      return problems.push_back(
          {field, "has " + std::to_string(size) + " tokens; there is room for " + std::to_string(longest - 1)});
    const int wanted = request.max_tokens.value_or(request.chat ? longest : kUsualCompletionTokens);
    jobs.push_back({.prompt = std::move(prompt).value(),
                    .samples = request.samples,
                    .sampling = {.temperature = request.temperature.value_or(usual.temperature),
                                 .top_p = request.top_p.value_or(usual.top_p),
                                 .top_k = request.top_k.value_or(usual.top_k)},
                    .key = {.seed = request.seed.value_or(seed), .group = jobs.size() + problems.size()},
                    .max_tokens = std::min(wanted, longest - size),
                    .stop_tokens = request.chat ? answer_end_tokens(model) : end_tokens(model),
                    .stop_strings = request.stop,
                    .likeliest = request.likeliest.value_or(0)});
  };
  if (request.chat) {
    add("messages", chat_prompt(request, model));
  } else {
    for (std::size_t i = 0; i < request.prompts.size(); ++i)
      add(request.prompts.size() == 1 ? "prompt" : "prompt[" + std::to_string(i) + "]",
          completion_prompt(request.prompts[i], model));
  }
  if (!problems.empty()) return problems;
  return jobs;
}

/// Reads large requests, which takes many times their size, one after the other on one thread: malloc() keeps what it
/// freed at the end of each thread's memory, and returns the rest.
class OpenAiApi::LargeRequests {
 public:
  template <class Read>
  std::variant<Prepared, HttpReply> run(Read read) {
    std::packaged_task<std::variant<Prepared, HttpReply>()> task(read);
    auto done = task.get_future();
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(task));
    }
    changed_.notify_one();
    return done.get();
  }

 private:
  void work(const std::stop_token& end) {
    for (std::unique_lock lock(mutex_); changed_.wait(lock, end, [&] { return !waiting_.empty(); }); lock.lock()) {
      auto task = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      task();
      ::malloc_trim(0);
    }
  }

  std::mutex mutex_{};
  std::condition_variable_any changed_{};
  std::deque<std::packaged_task<std::variant<Prepared, HttpReply>()>> waiting_{};
  std::jthread thread_{[this](const std::stop_token& end) { work(end); }};
};

OpenAiApi::~OpenAiApi() = default;

OpenAiApi::OpenAiApi(const LoadedModel& model, TextService& service, std::string name, std::uint64_t seed)
    : model_(model),
      service_(service),
      name_(std::move(name)),
      seed_(seed),
      started_(seconds_now()),
      large_(std::make_unique<LargeRequests>()) {}

HttpReply OpenAiApi::answer(const HttpCall& call, const HttpConnection& connection) {
  const bool chat = call.path == "/v1/chat/completions";
  if (chat || call.path == "/v1/completions") {
    if (call.method == "POST") return generated(call, connection, chat);
  } else if (call.method == "GET") {
    if (call.path == "/health")
      return service_.failure() ? refused(503, "the engine has failed") : HttpReply{.body = R"({"status":"ok"})"};
    if (call.path == "/v1/models") return {.body = models_answer(name_, started_, service_.longest_text())};
    if (call.path == "/v1/models/" + name_) return {.body = model_answer(name_, started_, service_.longest_text())};
  }
  return refused(404, call.method + " " + call.path.substr(0, 200) +
                          ": expected GET /v1/models or /health, or POST /v1/chat/completions or /v1/completions");
}

std::variant<OpenAiApi::Prepared, HttpReply> OpenAiApi::prepared(const HttpCall& call, bool chat,
                                                                 std::uint64_t number) const {
  ReadRequest read = chat ? read_chat_request(call.body) : read_completion_request(call.body);
  if (const auto* problems = std::get_if<Problems>(&read))
    return HttpReply{.status = 400, .body = error_answer(*problems)};
  auto request = std::get<OpenAiRequest>(std::move(read));
  if (!request.model.empty() && request.model != name_)
    return refused(404, "model: there is no '" + request.model.substr(0, 200) + "'; expected " + name_, "model");
  const auto texts = static_cast<std::int64_t>(chat ? 1 : request.prompts.size()) * request.samples;
  if (texts > service_.most_texts())
    return refused(400,
                   "n: expected at most " + std::to_string(service_.most_texts()) + " texts in all, found " +
                       std::to_string(texts),
                   "n");
  auto jobs = text_jobs(request, model_, service_.longest_text(), derive_seed(seed_, "request", number));
  if (const auto* problems = std::get_if<Problems>(&jobs))
    return HttpReply{.status = 400, .body = error_answer(*problems)};
  request.messages.clear();
  request.prompts.clear();
  return Prepared{std::move(request), std::get<std::vector<TextJob>>(std::move(jobs))};
}

HttpReply OpenAiApi::generated(const HttpCall& call, const HttpConnection& connection, bool chat) {
  const std::uint64_t number = requests_++;
  const auto prepare = [&] { return prepared(call, chat, number); };
  auto read = call.body.size() > kLargeRequest ? large_->run(prepare) : prepare();
  if (auto* refusal = std::get_if<HttpReply>(&read)) return std::move(*refusal);
  auto& [request, jobs] = std::get<Prepared>(read);
  std::vector<std::vector<TokenId>> prompts;
  for (const TextJob& job : jobs) prompts.push_back(job.prompt);
  auto order = service_.submit(std::move(jobs), request.stream ? Delivery::AsSampled : Delivery::Whole);
  if (!order) {
    HttpReply busy = refused(503, "too many requests wait, or the server is ending; try again later");
    busy.headers.push_back({"Retry-After", "1"});
    return busy;
  }
  AnswerHead head{.id = (chat ? "chatcmpl-" : "cmpl-") + hexadecimal(derive_seed(seed_, "name", number)),
                  .model = name_,
                  .created = seconds_now()};
  const bool stream = request.stream;
  auto answer = std::make_shared<Answer>(std::move(request), model_, std::move(head), std::move(prompts),
                                         std::move(order), connection);
  if (!stream) {
    const auto whole = answer->whole();
    return whole ? HttpReply{.body = *whole} : refused(499, "the client has left");
  }
  return {.content_type = "text/event-stream", .headers = {{"Cache-Control", "no-cache"}}, .pieces = [answer] {
            return answer->next_events();
          }};
}

}  // namespace carnot
