#include "carnot/tools/mcp/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/base/json.h"

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

OrderedJson message_json(const std::string& text) { return parse_json<OrderedJson>(text, "test").value(); }

McpMessage one(const std::string& text) { return parse_mcp(text, "server, line 3").value().at(0); }

std::string complaint(const std::string& text) {
  const auto read = parse_mcp(text, "server, line 3");
  return read ? "" : read.error().message;
}

TEST(McpMessages, ARequestOfTheRevisionWithoutAHandshakeCarriesItsVersion) {
  EXPECT_EQ(mcp_request(4, "tools/list", OrderedJson::object(), false),
            R"({"jsonrpc":"2.0","id":4,"method":"tools/list"})");
  const OrderedJson stateless = message_json(mcp_request(5, "tools/call", {{"name", "add"}}, true));
  EXPECT_EQ(stateless["params"]["name"], "add");
  EXPECT_EQ(stateless["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
  EXPECT_EQ(message_json(mcp_request(1, "initialize", mcp_initialize_params(), false))["params"]["protocolVersion"],
            "2025-11-25");
}

TEST(McpMessages, AreAnswersRequestsAndNotifications) {
  EXPECT_EQ(one(R"({"jsonrpc": "2.0", "id": 4, "result": {"a": 1}})").body.at("a"), 1);
  EXPECT_EQ(one(R"({"id": 4, "result": {}})").id, 4);
  const McpMessage failed = one(R"({"id": 4, "error": {"code": -32602, "message": "no such tool"}})");
  ASSERT_TRUE(failed.error.has_value());
  EXPECT_EQ(failed.error->code, kMcpBadParameters);
  EXPECT_EQ(failed.error->message, "no such tool");
  EXPECT_EQ(one(R"({"method": "notifications/message", "params": {}})").kind, McpMessage::Kind::Notification);
  EXPECT_EQ(one(R"({"method": "ping", "id": "p1"})").kind, McpMessage::Kind::Request);
  EXPECT_EQ(parse_mcp(R"([{"id": 1, "result": {}}, {"id": 2, "result": {}}])", "").value().size(), 2u);
}

TEST(McpMessages, WhatIsNoneIsToldWithItsPlace) {
  EXPECT_THAT(complaint("Starting server"), HasSubstr("server, line 3"));
  EXPECT_THAT(complaint("5"), HasSubstr("server, line 3: expected a JSON-RPC object, found 5"));
  EXPECT_THAT(complaint("[]"), HasSubstr("expected from 1 to 1000 messages"));
  EXPECT_THAT(complaint(R"({"id": 4})"), HasSubstr("expected a result or an error"));
  EXPECT_THAT(complaint(R"({"id": "4", "result": {}})"), HasSubstr("expected a result or an error"));
  EXPECT_THAT(complaint(R"({"id": null, "error": {"code": -32700, "message": "Parse error"}})"),
              HasSubstr("server, line 3: Parse error"));
}

TEST(McpMessages, APingIsAnsweredAndAllElseRefused) {
  EXPECT_EQ(mcp_answer(message_json(R"({"method": "ping", "id": "p1"})")),
            R"({"jsonrpc":"2.0","id":"p1","result":{}})");
  EXPECT_EQ(message_json(mcp_answer(message_json(R"({"method": "sampling/createMessage", "id": 9})")))["error"]["code"],
            kMcpMethodNotFound);
}

TEST(McpMessages, EveryKnownRevisionIsSpoken) {
  for (const char* version : {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"})
    EXPECT_EQ(read_mcp_version({{"protocolVersion", version}}).value(), version);
  EXPECT_THAT(read_mcp_version({{"protocolVersion", "1999-01-01"}}).error().message,
              AllOf(HasSubstr("1999-01-01"), HasSubstr("2025-06-18")));
  EXPECT_FALSE(read_mcp_version(message_json("[]")).ok());
}

TEST(McpMessages, ToolsKeepTheOrderOfTheirSchemas) {
  const McpTools read = read_mcp_tools(message_json(R"({"nextCursor": "p2", "tools": [
      {"name": "files.read", "description": "reads", "annotations": {"readOnlyHint": true},
       "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}, "at": {"type": "integer"}}}},
      {"name": "now", "inputSchema": {"type": "object"}}]})"))
                            .value();
  EXPECT_EQ(read.tools.at(0).name, "files_read") << "a call may not have a period";
  EXPECT_THAT(read.names, ElementsAre("files.read", "now"));
  EXPECT_EQ(read.tools.at(0).parameters,
            R"({"type":"object","properties":{"path":{"type":"string"},"at":{"type":"integer"}}})");
  EXPECT_FALSE(read.only_read) << "`now` does not say so";
  EXPECT_EQ(read.next_cursor, "p2");
  EXPECT_FALSE(read_mcp_tools(message_json(R"({"tools": [{"description": "no name"}]})")).ok());
  EXPECT_FALSE(read_mcp_tools(message_json("{}")).ok());
}

TEST(McpMessages, AResultIsItsTextsAndMarks) {
  const ToolResult read = read_mcp_result(message_json(R"({"content": [{"type": "text", "text": "one"},
      {"type": "image", "data": "AAAA", "mimeType": "image/png"},
      {"type": "resource_link", "uri": "file:///a"}, {"type": "resource", "resource": {"uri": "b", "text": "two"}}]})"))
                              .value();
  EXPECT_EQ(read.text, "one\n[image: image/png]\n[resource: file:///a]\ntwo");
  EXPECT_EQ(read.status, "ok");
  EXPECT_EQ(read_mcp_result(message_json(R"({"content": [], "structuredContent": {"b": 1, "a": 2}})"))->text,
            R"({"b":1,"a":2})");
  EXPECT_EQ(read_mcp_result(message_json(R"({"isError": true, "content": [{"type": "text", "text": "no"}]})"))->status,
            "error");
  EXPECT_FALSE(read_mcp_result(message_json("{}")).ok());
  EXPECT_FALSE(read_mcp_result(message_json(R"({"content": "text"})")).ok());
  EXPECT_FALSE(read_mcp_result(message_json(R"({"resultType": "input_required"})")).ok());
}

}  // namespace
}  // namespace carnot
