#include "carnot/serving/openai/chat_answer.h"

#include <algorithm>

#include "carnot/core/base/json.h"
#include "carnot/core/base/printable.h"

namespace carnot {
namespace {

constexpr std::size_t kShownAnswerBody = 300;

/// The member of that name; null if there is none.
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

/// Arguments are a text of JSON; some servers send the object itself.
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
                 printable_line(body.substr(0, kShownAnswerBody))};
  if (is_text) answer.text = content->get<std::string>();
  answer.finish_reason = text_of(*choice, "finish_reason");
  const Json* usage = member_of(parsed, "usage");
  answer.usage = {.prompt = count_of(usage, "prompt_tokens"), .completion = count_of(usage, "completion_tokens")};
  return answer;
}

}  // namespace carnot
