#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "carnot/tools/mcp/server.h"

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(McpServerList, IsWhatOtherClientsRead) {
  ::setenv("CARNOT_TEST_TOKEN", "secret", 1);
  const auto servers = parse_mcp_servers(R"({"mcpServers": {
      "weather": {"command": "python3", "args": ["server.py", "--port", "1"], "env": {"KEY": "${CARNOT_TEST_TOKEN}!"},
                  "cwd": "/srv", "type": "stdio"},
      "off": {"command": "x", "disabled": true},
      "remote": {"url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer ${CARNOT_TEST_TOKEN}"}}}})",
                                         "s.json")
                           .value();
  ASSERT_EQ(servers.size(), 2u);
  EXPECT_EQ(servers[0].name, "mcp weather");
  EXPECT_THAT(servers[0].program.command, ElementsAre("python3", "server.py", "--port", "1"));
  EXPECT_THAT(servers[0].program.environment, ElementsAre("KEY=secret!"));
  EXPECT_EQ(servers[0].program.folder, "/srv");
  EXPECT_EQ(servers[1].url, "http://127.0.0.1:1/mcp");
  EXPECT_EQ(servers[1].headers.at(0).second, "Bearer secret");
}

TEST(McpServerList, EveryProblemIsToldWithItsPlace) {
  EXPECT_THAT(
      parse_mcp_servers(R"({"mcpServers": {"a": {"args": [5]}, "b": 7, "c": {"command": "x", "url": "y"},
                                   "d": {"command": "${CARNOT_NO_SUCH_VARIABLE}"}}})",
                        "s.json")
          .error()
          .message,
      AllOf(HasSubstr("s.json: a.args: expected a string"), HasSubstr("s.json: b: expected an object"),
            HasSubstr("s.json: a.command: expected either a command or a url"),
            HasSubstr("s.json: c.command: expected either"),
            HasSubstr("s.json: d.command: expected the environment to have a variable CARNOT_NO_SUCH_VARIABLE")));
  EXPECT_FALSE(parse_mcp_servers("{}", "s.json").ok());
}

TEST(CommandWords, AreSplitAsAShellDoes) {
  EXPECT_THAT(command_words(R"(python3  'my server.py' --name="a b"c \"x '' )").value(),
              ElementsAre("python3", "my server.py", "--name=a bc", "\"x", ""));
  EXPECT_FALSE(command_words("python3 'my server").ok());
}

}  // namespace
}  // namespace carnot
