// Whatever an MCP server says becomes messages, tools or a result, or an error; so does the file that lists servers.
// The first byte chooses what is read.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/core/env/tool.h"
#include "carnot/tools/mcp/messages.h"
#include "carnot/tools/mcp/server.h"
#include "tests/fuzz/target.h"

namespace {

void read_messages(std::string_view text) {
  const auto messages = carnot::parse_mcp(text, "server");
  if (!messages) return;
  for (const carnot::McpMessage& message : *messages) {
    if (message.kind == carnot::McpMessage::Kind::Request) (void)carnot::mcp_answer(message.body);
    if (message.kind != carnot::McpMessage::Kind::Answer || message.error) continue;
    (void)carnot::read_mcp_version(message.body);
    (void)carnot::read_mcp_result(message.body);
    const auto tools = carnot::read_mcp_tools(message.body);
    if (!tools) continue;
    for (const carnot::ToolDescription& tool : tools->tools) {
      CARNOT_CHECK(tool.check().ok(), tool.name);
      const auto schema = carnot::arguments_schema(tool);
      if (schema) (void)(*schema)->problems({{"a", 1}, {"b", {1, "x"}}});
    }
  }
}

}  // namespace

CARNOT_FUZZ_TARGET(mcp_messages) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 4 == 3)
    (void)carnot::parse_mcp_servers(text, "servers.json");
  else
    read_messages(text);
  return 0;
}
