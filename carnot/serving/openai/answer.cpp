#include "carnot/serving/openai/answer.h"

#include "carnot/core/base/check.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/utf8.h"

namespace carnot {
namespace {

std::string text_of(const OrderedJson& value) {
  return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string event_of(const OrderedJson& value) { return "data: " + text_of(value) + "\n\n"; }

OrderedJson head_of(const OpenAiRequest& request, const AnswerHead& head, bool piece) {
  const char* object = !request.chat ? "text_completion" : piece ? "chat.completion.chunk" : "chat.completion";
  return {{"id", head.id}, {"object", object}, {"created", head.created}, {"model", head.model}};
}

OrderedJson usage_of(const TokenUsage& usage) {
  return {{"prompt_tokens", usage.prompt},
          {"completion_tokens", usage.completion},
          {"total_tokens", usage.prompt + usage.completion}};
}

OrderedJson named(const NamedLogProb& token) {
  OrderedJson bytes = OrderedJson::array();
  for (const char byte : token.bytes) bytes.push_back(static_cast<unsigned char>(byte));
  return {{"token", token.bytes}, {"logprob", token.log_prob}, {"bytes", std::move(bytes)}};
}

OrderedJson chat_log_probs(const AnsweredChoice& choice) {
  OrderedJson content = OrderedJson::array();
  for (const AnsweredToken& token : choice.tokens) {
    OrderedJson one = named(token.drawn);
    one["top_logprobs"] = OrderedJson::array();
    for (const NamedLogProb& likely : token.likeliest) one["top_logprobs"].push_back(named(likely));
    content.push_back(std::move(one));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

// Offsets count the characters of the tokens' texts.
OrderedJson completion_log_probs(const AnsweredChoice& choice, int likeliest) {
  OrderedJson tokens = OrderedJson::array(), log_probs = OrderedJson::array(), top = OrderedJson::array(),
              offsets = OrderedJson::array();
  std::size_t offset = choice.text_offset;
  for (const AnsweredToken& token : choice.tokens) {
    tokens.push_back(token.drawn.bytes);
    log_probs.push_back(token.drawn.log_prob);
    OrderedJson likely = OrderedJson::object();
    for (const NamedLogProb& one : token.likeliest)
      likely.emplace(with_replacement_characters(one.bytes), one.log_prob);
    top.push_back(std::move(likely));
    offsets.push_back(offset);
    offset += count_characters(token.drawn.bytes);
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(log_probs)},
          {"top_logprobs", likeliest > 0 ? std::move(top) : OrderedJson()},
          {"text_offset", std::move(offsets)}};
}

OrderedJson log_probs_of(const OpenAiRequest& request, const AnsweredChoice& choice) {
  if (!request.likeliest) return nullptr;
  return request.chat ? chat_log_probs(choice) : completion_log_probs(choice, *request.likeliest);
}

OrderedJson finish_of(const AnsweredChoice& choice) {
  return choice.finish_reason.empty() ? OrderedJson() : OrderedJson(choice.finish_reason);
}

void add_ids(OrderedJson& to, const OpenAiRequest& request, const AnsweredChoice& choice) {
  if (!request.return_token_ids) return;
  if (!choice.prompt.empty()) to["prompt_token_ids"] = choice.prompt;
  OrderedJson ids = OrderedJson::array();
  for (const AnsweredToken& token : choice.tokens) ids.push_back(token.id);
  to["token_ids"] = std::move(ids);
}

OrderedJson calls_of(const std::vector<ToolCall>& calls, bool numbered) {
  OrderedJson list = OrderedJson::array();
  for (const ToolCall& call : calls) {
    OrderedJson one = OrderedJson::object();
    if (numbered) one["index"] = list.size();
    one["id"] = call.id;
    one["type"] = "function";
    one["function"] = {{"name", call.name}, {"arguments", call.arguments}};
    list.push_back(std::move(one));
  }
  return list;
}

OrderedJson chat_message(const AnsweredChoice& choice) {
  OrderedJson message{{"role", "assistant"}, {"content", choice.text}};
  if (choice.tool_calls.empty()) return message;
  if (choice.text.empty()) message["content"] = nullptr;
  message["tool_calls"] = calls_of(choice.tool_calls, false);
  return message;
}

OrderedJson whole_choice(const OpenAiRequest& request, const AnsweredChoice& choice) {
  OrderedJson object{{"index", choice.index}};
  if (request.chat)
    object["message"] = chat_message(choice);
  else
    object["text"] = choice.text;
  object["logprobs"] = log_probs_of(request, choice);
  object["finish_reason"] = finish_of(choice);
  add_ids(object, request, choice);
  return object;
}

OrderedJson piece_of(const OpenAiRequest& request, const AnsweredChoice& piece) {
  if (!request.chat) return whole_choice(request, piece);
  OrderedJson delta = OrderedJson::object();
  if (!piece.text.empty() || (piece.tool_calls.empty() && piece.finish_reason.empty())) delta["content"] = piece.text;
  if (!piece.tool_calls.empty()) delta["tool_calls"] = calls_of(piece.tool_calls, true);
  OrderedJson object{{"index", piece.index},
                     {"delta", std::move(delta)},
                     {"logprobs", log_probs_of(request, piece)},
                     {"finish_reason", finish_of(piece)}};
  add_ids(object, request, piece);
  return object;
}

std::string piece_event(const OpenAiRequest& request, const AnswerHead& head, OrderedJson choices,
                        std::span<const TokenId> prompt) {
  OrderedJson object = head_of(request, head, true);
  object["choices"] = std::move(choices);
  if (request.include_usage) object["usage"] = nullptr;
  if (request.return_token_ids && !prompt.empty()) object["prompt_token_ids"] = prompt;
  return event_of(object);
}

const char* type_of(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    default: return status < 500 ? "invalid_request_error" : "server_error";
  }
}

OrderedJson error_of(int status, const std::string& message, const std::string& param) {
  return {{"error",
           {{"message", message},
            {"type", type_of(status)},
            {"param", param.empty() ? OrderedJson() : OrderedJson(param)},
            {"code", status == 401 ? OrderedJson("invalid_api_key") : OrderedJson()}}}};
}

OrderedJson model_object(const std::string& model, std::int64_t created, int max_positions) {
  return {{"id", model},
          {"object", "model"},
          {"created", created},
          {"owned_by", "carnot"},
          {"max_model_len", max_positions}};
}

}  // namespace

std::string whole_answer(const OpenAiRequest& request, const AnswerHead& head, std::span<const AnsweredChoice> choices,
                         const TokenUsage& usage, std::span<const TokenId> prompt) {
  OrderedJson object = head_of(request, head, false);
  object["choices"] = OrderedJson::array();
  for (const AnsweredChoice& choice : choices) object["choices"].push_back(whole_choice(request, choice));
  object["usage"] = usage_of(usage);
  if (request.return_token_ids && !prompt.empty()) object["prompt_token_ids"] = prompt;
  return text_of(object);
}

std::string opening_event(const OpenAiRequest& request, const AnswerHead& head, int choice,
                          std::span<const TokenId> prompt) {
  return piece_event(request, head,
                     OrderedJson::array({{{"index", choice},
                                          {"delta", {{"role", "assistant"}, {"content", ""}}},
                                          {"logprobs", nullptr},
                                          {"finish_reason", nullptr}}}),
                     prompt);
}

std::string choice_event(const OpenAiRequest& request, const AnswerHead& head, const AnsweredChoice& piece) {
  return piece_event(request, head, OrderedJson::array({piece_of(request, piece)}), {});
}

std::string usage_event(const OpenAiRequest& request, const AnswerHead& head, const TokenUsage& usage) {
  OrderedJson object = head_of(request, head, true);
  object["choices"] = OrderedJson::array();
  object["usage"] = usage_of(usage);
  return event_of(object);
}

std::string error_event(int status, const std::string& message) { return event_of(error_of(status, message, "")); }

std::string error_answer(int status, const std::string& message, const std::string& param) {
  return text_of(error_of(status, message, param));
}

std::string error_answer(std::span<const FieldProblem> problems) {
  CARNOT_CHECK_GT(problems.size(), std::size_t{0});
  std::string message;
  for (const FieldProblem& problem : problems)
    message += (message.empty() ? "" : "\n") + (problem.field.empty() ? "" : problem.field + ": ") + problem.message;
  return error_answer(400, message, problems[0].field);
}

std::string models_answer(const std::string& model, std::int64_t created, int max_positions) {
  return text_of({{"object", "list"}, {"data", OrderedJson::array({model_object(model, created, max_positions)})}});
}

std::string model_answer(const std::string& model, std::int64_t created, int max_positions) {
  return text_of(model_object(model, created, max_positions));
}

}  // namespace carnot
