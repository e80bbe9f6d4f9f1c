#include "carnot/serving/openai/chat_request.h"

#include "carnot/core/base/json.h"

namespace carnot {
namespace {

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

}  // namespace carnot
