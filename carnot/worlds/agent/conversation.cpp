#include "carnot/worlds/agent/conversation.h"

#include <algorithm>

#include "carnot/core/base/check.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/utf8.h"

namespace carnot {
namespace {

/// System messages at the start, joined; then the others.
std::pair<std::string, std::vector<Message>> parted(const std::vector<Message>& messages) {
  std::string system;
  std::size_t begin = 0;
  for (; begin < messages.size() && messages[begin].role == "system"; ++begin)
    system += (begin > 0 ? "\n\n" : "") + messages[begin].content;
  return {std::move(system), {messages.begin() + static_cast<std::ptrdiff_t>(begin), messages.end()}};
}

Result<ToolDescription> tool_of(const std::string& json) {
  CARNOT_ASSIGN_OR_RETURN(const auto tool, parse_json_object<OrderedJson>(json, "the tool"));
  const OrderedJson& function = tool.at("function");
  ToolDescription description{.name = function.at("name").get<std::string>()};
  if (const auto text = function.find("description"); text != function.end()) description.description = *text;
  if (const auto schema = function.find("parameters"); schema != function.end())
    description.parameters = schema->dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  CARNOT_RETURN_IF_ERROR(description.check());
  return description;
}

bool same_json(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto left = parse_json(a, "a"), right = parse_json(b, "b");
  return left && right && *left == *right;
}

/// Clients write arguments again.
bool same_message(const Message& a, const Message& b) {
  return a.role == b.role && a.content == b.content && a.tool_call_id == b.tool_call_id &&
         std::equal(a.tool_calls.begin(), a.tool_calls.end(), b.tool_calls.begin(), b.tool_calls.end(),
                    [](const ToolCall& left, const ToolCall& right) {
                      return left.name == right.name && left.id == right.id &&
                             same_json(left.arguments, right.arguments);
                    });
}

/// One result for each call, in their order.
std::optional<Reply> results_reply(const std::vector<ToolCall>& calls, std::span<const Message> messages) {
  if (calls.empty() || messages.size() != calls.size()) return std::nullopt;
  Reply reply{.form = ReplyForm::ToolResult, .tool = calls[0].name};
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (messages[i].role != "tool" || messages[i].tool_call_id != calls[i].id) return std::nullopt;
    reply.results.push_back({.call_id = calls[i].id, .text = messages[i].content});
  }
  return reply;
}

}  // namespace

Status check_call(const OpenAiRequest& request) {
  std::vector<std::string> problems;
  if (request.samples > 1) problems.emplace_back("n: an episode has one policy; expected 1");
  if (request.likeliest) problems.emplace_back("logprobs: not reported in training; expected false");
  if (request.return_token_ids)
    problems.emplace_back("return_token_ids: recorded in training, not returned; expected false");
  if (!request.stop.empty()) problems.emplace_back("stop: a turn ends as the chat format says; expected none");
  const auto [system, messages] = parted(request.messages);
  if (messages.empty()) problems.emplace_back("messages: expected one in addition to the system message");
  for (const Message& message : messages)
    if (message.role == "system") problems.emplace_back("messages: expected the system message first");
  for (const std::string& tool : request.tools)
    if (const auto description = tool_of(tool); !description)
      problems.push_back("tools: " + description.error().message);
  if (!problems.empty()) return join_errors(problems);
  return Done{};
}

Opening prompt_of(const OpenAiRequest& request) {
  auto [system, messages] = parted(request.messages);
  Opening opening{.system = std::move(system), .history = std::move(messages)};
  for (const std::string& tool : request.tools) opening.tools.push_back(tool_of(tool).value());
  return opening;
}

std::optional<Reply> continuation(const AnsweredCall& last, const OpenAiRequest& request) {
  const std::size_t known = last.request.messages.size();
  if (request.tools != last.request.tools || request.messages.size() <= known + 1) return std::nullopt;
  for (std::size_t i = 0; i < known; ++i)
    if (!same_message(request.messages[i], last.request.messages[i])) return std::nullopt;
  if (!same_message(request.messages[known], last.answer)) return std::nullopt;
  const auto further = std::span(request.messages).subspan(known + 1);
  if (auto results = results_reply(last.answer.tool_calls, further)) return results;
  const bool is_user = further.size() == 1 && further[0].role == "user" && last.answer.tool_calls.empty();
  if (!is_user) return std::nullopt;
  return Reply{.text = further[0].content, .form = ReplyForm::UserMessage};
}

Message answer_message(const PolicyResponse& response, int number) {
  Message message{.role = "assistant"};
  message.tool_calls = response.tool_calls;
  if (message.tool_calls.empty()) message.content = with_replacement_characters(response.text);
  for (std::size_t i = 0; i < message.tool_calls.size(); ++i)
    if (std::string& id = message.tool_calls[i].id; id.empty())
      id = "call_" + std::to_string(number) + "_" + std::to_string(i);
  return message;
}

}  // namespace carnot
