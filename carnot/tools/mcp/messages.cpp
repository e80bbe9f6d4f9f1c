#include "carnot/tools/mcp/messages.h"

#include <algorithm>
#include <array>

#include "carnot/core/base/json.h"
#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

constexpr JsonLimits kMessageLimits{.bytes = std::size_t{16} << 20, .values = std::size_t{1} << 20, .depth = 60};
constexpr std::size_t kMostMessages = 1000;  ///< in one list

/// The text under `key`, or `otherwise`.
std::string text_at(const OrderedJson& object, const char* key, const std::string& otherwise = "") {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

const OrderedJson* member(const OrderedJson& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

McpError error_of(const OrderedJson& error) {
  McpError read{.message = text_at(error, "message", "an error without a message")};
  if (const OrderedJson* code = member(error, "code"); code != nullptr && code->is_number_integer())
    read.code = static_cast<int>(std::clamp<std::int64_t>(code->get<std::int64_t>(), -1'000'000, 1'000'000));
  return read;
}

Result<McpMessage> message_of(const OrderedJson& value, const std::string& where) {
  if (!value.is_object()) return Error{where + ": expected a JSON-RPC object, found " + shown(Json(value))};
  if (member(value, "method") != nullptr)
    return McpMessage{
        .kind = member(value, "id") != nullptr ? McpMessage::Kind::Request : McpMessage::Kind::Notification,
        .body = value};
  const OrderedJson* id = member(value, "id");
  const OrderedJson* error = member(value, "error");
  const OrderedJson* result = member(value, "result");
  // What could not be read has no id: no one's answer.
  if (error != nullptr && (id == nullptr || id->is_null())) return Error{where + ": " + error_of(*error).message};
  if (id == nullptr || !id->is_number_integer() || (error == nullptr && result == nullptr))
    return Error{where + ": expected a result or an error with the id of a request"};
  McpMessage message{.kind = McpMessage::Kind::Answer, .id = id->get<std::int64_t>()};
  if (error != nullptr)
    message.error = error_of(*error);
  else
    message.body = *result;
  return message;
}

bool may_be_in_a_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

std::string mark_of(const OrderedJson& part) {
  const std::string type = text_at(part, "type", "content");
  if (type == "resource") {
    const OrderedJson* resource = member(part, "resource");
    if (resource != nullptr && member(*resource, "text") != nullptr) return text_at(*resource, "text");
    return "[resource: " + (resource != nullptr ? text_at(*resource, "uri") : "") + "]";
  }
  if (type == "resource_link") return "[resource: " + text_at(part, "uri") + "]";
  return "[" + type + ": " + text_at(part, "mimeType", "unknown") + "]";
}

}  // namespace

std::string mcp_request(std::int64_t id, std::string_view method, OrderedJson params, bool is_stateless) {
  if (is_stateless)
    params["_meta"] = {{"io.modelcontextprotocol/protocolVersion", kMcpStatelessVersion},
                       {"io.modelcontextprotocol/clientInfo", mcp_initialize_params().at("clientInfo")},
                       {"io.modelcontextprotocol/clientCapabilities", OrderedJson::object()}};
  OrderedJson request{{"jsonrpc", "2.0"}, {"id", id}, {"method", method}};
  if (!params.empty()) request["params"] = std::move(params);
  return json_line(request);
}

std::string mcp_notification(std::string_view method) {
  return json_line(OrderedJson{{"jsonrpc", "2.0"}, {"method", method}});
}

std::string mcp_answer(const OrderedJson& request) {
  OrderedJson answer{{"jsonrpc", "2.0"}, {"id", request.at("id")}};
  if (text_at(request, "method") == "ping")
    answer["result"] = OrderedJson::object();
  else
    answer["error"] = {{"code", kMcpMethodNotFound}, {"message", "this client offers tools only"}};
  return json_line(answer);
}

OrderedJson mcp_initialize_params() {
  return {{"protocolVersion", kMcpHandshakeVersion},
          {"capabilities", OrderedJson::object()},
          {"clientInfo", {{"name", "carnot"}, {"version", "0.1.0"}}}};
}

Result<std::vector<McpMessage>> parse_mcp(std::string_view text, const std::string& where) {
  CARNOT_ASSIGN_OR_RETURN(const auto parsed, parse_json<OrderedJson>(text, where, kMessageLimits));
  if (parsed.is_array() && (parsed.empty() || parsed.size() > kMostMessages))
    return Error{where + ": expected from 1 to " + std::to_string(kMostMessages) + " messages"};
  std::vector<McpMessage> messages;
  for (const OrderedJson& one : parsed.is_array() ? parsed : OrderedJson::array({parsed})) {
    CARNOT_ASSIGN_OR_RETURN(auto message, message_of(one, where));
    messages.push_back(std::move(message));
  }
  return messages;
}

Result<std::string> read_mcp_version(const OrderedJson& result) {
  constexpr std::array<std::string_view, 4> kKnown = {"2024-11-05", "2025-03-26", "2025-06-18", kMcpHandshakeVersion};
  std::string version = text_at(result, "protocolVersion");
  if (std::find(kKnown.begin(), kKnown.end(), version) != kKnown.end()) return version;
  return Error{"speaks protocol version \"" + version + "\"; expected one of " +
               join(std::vector<std::string>(kKnown.begin(), kKnown.end()))};
}

Result<McpTools> read_mcp_tools(const OrderedJson& result) {
  const OrderedJson* list = member(result, "tools");
  if (list == nullptr || !list->is_array()) return Error{"expected a list of tools in the answer to tools/list"};
  McpTools read{.next_cursor = text_at(result, "nextCursor")};
  for (const OrderedJson& one : *list) {
    ToolDescription tool{.name = text_at(one, "name"), .description = text_at(one, "description")};
    read.names.push_back(tool.name);
    for (char& c : tool.name)
      if (!may_be_in_a_name(c)) c = '_';
    if (const OrderedJson* schema = member(one, "inputSchema"); schema != nullptr) tool.parameters = json_line(*schema);
    CARNOT_RETURN_IF_ERROR(tool.check());
    const OrderedJson* annotations = member(one, "annotations");
    const OrderedJson* only_reads = annotations == nullptr ? nullptr : member(*annotations, "readOnlyHint");
    read.only_read = read.only_read && only_reads != nullptr && *only_reads == true;
    read.tools.push_back(std::move(tool));
  }
  return read;
}

Result<ToolResult> read_mcp_result(const OrderedJson& result) {
  const OrderedJson* content = member(result, "content");
  const OrderedJson* structured = member(result, "structuredContent");
  const OrderedJson* is_error = member(result, "isError");
  const std::string type = text_at(result, "resultType", "complete");
  if (type != "complete") return Error{"asks for \"" + type + "\", which this client does not offer"};
  if (content != nullptr && !content->is_array()) return Error{"expected a list under content"};
  if (content == nullptr && structured == nullptr && is_error == nullptr)
    return Error{"expected content in the answer to tools/call"};
  ToolResult read;
  if (content != nullptr)
    for (const OrderedJson& part : *content) {
      if (&part != &content->front()) read.text += "\n";
      read.text += text_at(part, "type") == "text" ? text_at(part, "text") : mark_of(part);
    }
  if (read.text.empty() && structured != nullptr) read.text = json_line(*structured);
  if (is_error != nullptr && *is_error == true) read.status = "error";
  return read;
}

}  // namespace carnot
