// Tools of MCP servers in episodes: started by a command or reached at an address, of every revision.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <future>
#include <mutex>
#include <thread>
#include <tuple>

#include "carnot/core/base/log.h"
#include "carnot/core/env/environment_boundary.h"
#include "carnot/core/subprocess/line_program.h"
#include "testing/test_packages.h"
#include "tool_use.h"

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace carnot::testing;  // NOLINT: the episodes of this test

TEST_F(ToolUseTest, AnMcpServerIsStartedAndItsToolsAreCalled) {
  for (const char* version : {"2024-11-05", "2025-03-26", "2025-06-18"}) {
    const auto environment = opened(dataset("\"" + kServer + " --version " + version + "\"").value());
    EXPECT_THAT(texts(environment->step(call("add", R"({"a": 400, "b": 8})"))), ElementsAre("408"));
    EXPECT_THAT(texts(environment->step(call("picture", "{}"))), ElementsAre("[image: image/png]"));
    const Reply refused = environment->step(call("refuse", "{}"));
    EXPECT_THAT(texts(refused), ElementsAre("I will not."));
    EXPECT_EQ(refused.status, "error");
    EXPECT_THAT(texts(environment->step(call("add", R"({"a": "x"})"))), ElementsAre(HasSubstr("arguments of add")));
    EXPECT_THAT(texts(environment->step(call("fault", R"({"what": "say more"})"))), ElementsAre("right"))
        << "its ping was answered";
    EXPECT_EQ(environment->step("408").reward, 1);
  }
}

TEST_F(ToolUseTest, AnMcpServerWithoutAHandshakeIsSupportedToo) {
  const auto environment = opened(dataset("\"" + kServer + " --stateless\"").value());
  EXPECT_THAT(texts(environment->step(call("add", R"({"a": 1, "b": 2})"))), ElementsAre("3"));
}

TEST_F(ToolUseTest, AToolsSchemaKeepsItsOrderInThePrompt) {
  const auto factory = dataset("\"" + kServer + "\"").value();
  const auto environment = factory->make(Split::Train, 0);
  const auto tools = environment->open().tools;
  ASSERT_EQ(tools.size(), 6u) << "both pages";
  EXPECT_THAT(tools[0].json(), HasSubstr(R"("properties":{"b":{"type":"number"},"a":{"type":"number"}})"));
  EXPECT_EQ(tools[1].name, "count_up");
}

TEST_F(ToolUseTest, EveryEpisodeHasItsOwnSessionIfToolsMayChangeState) {
  const auto own = dataset("\"" + kServer + "\"").value();
  const auto first = opened(own), second = opened(own);
  const auto count = [](Environment& one) { return texts(one.step(call("count_up", "{}"))).at(0); };
  EXPECT_EQ(count(*first), "1");
  EXPECT_EQ(count(*first), "2");
  EXPECT_EQ(count(*second), "1");
  EXPECT_EQ(first->branching(), Branching::Replayed);
  const auto shared = dataset("\"" + kServer + "\"", {"tool_sessions=all"}).value();
  const auto third = opened(shared), fourth = opened(shared);
  EXPECT_EQ(count(*third), "1");
  EXPECT_EQ(count(*fourth), "2");
  const auto read_only = dataset("\"" + kServer + " --read-only\"").value();
  const auto fifth = opened(read_only);
  EXPECT_EQ(fifth->branching(), Branching::Cloned);
  EXPECT_EQ(count(*fifth), "1");
  EXPECT_EQ(count(*fifth->clone()), "2") << "the session is shared";
}

TEST_F(ToolUseTest, AnEpisodePlayedAgainHasAFreshSession) {
  const auto factory = dataset("\"" + kServer + "\"").value();
  const auto environment = opened(factory);
  std::vector<PlayedTurn> turns;
  for (int i = 0; i < 2; ++i) {
    const PolicyResponse said = call("count_up", "{}");
    turns.push_back({.response = said, .reply_key = key_of(environment->step(said))});
  }
  const auto copy = copy_environment(*environment, [&] { return factory->make(Split::Train, 0); }, turns);
  EXPECT_THAT(texts(copy->step(call("count_up", "{}"))), ElementsAre("3"));
  EXPECT_THAT(texts(environment->step(call("count_up", "{}"))), ElementsAre("3"));
}

TEST_F(ToolUseTest, AListOfServersIsStartedWithTheirVariables) {
  std::ofstream(folder_ / "servers.json") << R"({"mcpServers": {"fake": {"command": "python3", "args": [")" + kTests +
                                                 R"(mcp_server.py"], "env": {"CARNOT_TEST_KEY": "secret"}}}})";
  const auto environment = opened(dataset((folder_ / "servers.json").string()).value());
  EXPECT_THAT(texts(environment->step(call("environment", R"({"name": "CARNOT_TEST_KEY"})"))), ElementsAre("secret"));
}

TEST_F(ToolUseTest, WhatAServerSaysOnStandardErrorIsInTheLogWithItsName) {
  static std::mutex mutex;
  static std::string log;
  const LogSink before = set_log_sink([](LogLevel, const std::string& message) {
    const std::lock_guard lock(mutex);
    log += message + "\n";
  });
  {
    (void)dataset("\"" + kServer + "\"").value();
  }
  set_log_sink(before);
  EXPECT_THAT(log, AllOf(HasSubstr(kServer + " (process "), HasSubstr("): the fake server runs")));
}

/// A server of tests/process/mcp_server.py behind an address, until the end of the scope.
class RunningServer {
 public:
  explicit RunningServer(const std::vector<std::string>& arguments) {
    std::vector<std::string> command{"python3", kTests + "mcp_server.py"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    program_ = LineProgram::start("server", {.command = command}, 1000).value();
    program_->listen(
        {.on_line = [this](std::string_view line, bool, const std::string&) { port_.set_value(std::string(line)); },
         .on_end = [](const std::string&) {}});
    address_ = "http://127.0.0.1:" + port_.get_future().get() + "/mcp";
  }
  const std::string& address() const { return address_; }

 private:
  std::promise<std::string> port_{};
  std::string address_{};
  std::unique_ptr<LineProgram> program_{};
};

class ToolUseOverHttp : public ToolUseTest, public ::testing::WithParamInterface<std::vector<std::string>> {};

TEST_P(ToolUseOverHttp, AServersToolsAreCalledAndEachEpisodeHasItsSession) {
  const RunningServer server(GetParam());
  const auto factory = dataset("\"mcp " + server.address() + "\"").value();
  const auto first = opened(factory), second = opened(factory);
  EXPECT_THAT(texts(first->step(call("add", R"({"a": 400, "b": 8})"))), ElementsAre("408"));
  EXPECT_THAT(texts(first->step(call("fault", R"({"what": "say more"})"))), ElementsAre("right"))
      << "a ping in between was answered";
  EXPECT_THAT(texts(first->step(call("refuse", "{}"))), ElementsAre("I will not."));
  if (GetParam().back() != "--stateless") {
    const auto count = [](Environment& one) { return texts(one.step(call("count_up", "{}"))).at(0); };
    EXPECT_EQ(count(*first), "1");
    EXPECT_EQ(count(*first), "2");
    EXPECT_EQ(count(*second), "1");
  }
  EXPECT_EQ(first->step("408").reward, 1);
}

TEST_P(ToolUseOverHttp, AServersFailuresAreNotRewards) {
  const RunningServer server(GetParam());
  const auto factory = dataset("\"mcp " + server.address() + "\"", {"tool_timeout=4"}).value();
  const auto ask = [&](const std::string& what) {
    return failure_of(*opened(factory), call("fault", R"({"what": ")" + what + "\"}"));
  };
  EXPECT_EQ(ask("right"), "");
  EXPECT_THAT(ask("garbage"), HasSubstr("mcp " + server.address()));
  EXPECT_THAT(ask("internal error"), HasSubstr("tools/call of fault: the database is away"));
  EXPECT_THAT(ask("no content"), HasSubstr("expected content in the answer to tools/call"));
  EXPECT_THAT(ask("hang"), HasSubstr("mcp " + server.address()));
  EXPECT_EQ(ask("slow"), "") << "other sessions continue";
  EXPECT_THAT(ask("exit"), HasSubstr("mcp " + server.address()));
  // A server that is not ours is never restarted.
  std::string failure;
  for (int i = 0; i < 300 && failure.empty(); ++i) {
    failure = ask("right");
    if (failure.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_THAT(failure, HasSubstr("mcp " + server.address()));
}

INSTANTIATE_TEST_SUITE_P(Revisions, ToolUseOverHttp,
                         ::testing::Values(std::vector<std::string>{"--sse", "0", "--version", "2024-11-05"},
                                           std::vector<std::string>{"--http", "0", "--version", "2025-03-26"},
                                           std::vector<std::string>{"--http", "0", "--version", "2025-06-18"},
                                           std::vector<std::string>{"--http", "0", "--stateless"}));

TEST_F(ToolUseTest, AKeyForAServerIsReadFromTheListOfServers) {
  const RunningServer server({"--http", "0", "--token", "secret"});
  EXPECT_THAT(error_of("\"mcp " + server.address() + "\""), HasSubstr("answered with status 401: it wants a key"));
  ::setenv("CARNOT_TEST_TOKEN", "secret", 1);
  std::ofstream(folder_ / "servers.json") << R"({"mcpServers": {"far": {"url": ")" + server.address() +
                                                 R"(", "headers": {"Authorization": "Bearer ${CARNOT_TEST_TOKEN}"}}}})";
  const auto environment = opened(dataset((folder_ / "servers.json").string()).value());
  EXPECT_THAT(texts(environment->step(call("add", R"({"a": 1, "b": 2})"))), ElementsAre("3"));
}

TEST_F(ToolUseTest, AnUnreachableAddressIsReportedBeforeTheRun) {
  EXPECT_THAT(error_of("\"mcp http://127.0.0.1:1/mcp?key=secret\""),
              AllOf(HasSubstr("mcp http://127.0.0.1:1/mcp?...: "), HasSubstr("no connection"),
                    ::testing::Not(HasSubstr("secret"))));
  EXPECT_THAT(error_of("\"mcp http://127.0.0.1:http/\""), HasSubstr("env.tools: mcp"));
}

/// Servers made with the package mcp, versions 1 and 2.
class RealMcpServers : public ToolUseTest,
                       public ::testing::WithParamInterface<std::tuple<std::string, std::string>> {};

TEST_P(RealMcpServers, CanBeUsed) {
  const auto& [packages, transport] = GetParam();
  const std::string python = testing::python_with(packages);
  const std::string script = kTests + "adapters/mcp_package_server.py";
  std::string entry = "mcp " + python + " " + script + " stdio";
  std::unique_ptr<LineProgram> server;
  if (transport != "stdio") {
    const std::string port = transport == "sse" ? "18731" : "18732";
    server = LineProgram::start("server", {.command = {python, script, transport, port}}, 1000).value();
    server->listen({.on_line = [](std::string_view, bool, const std::string&) {}, .on_end = [](const std::string&) {}});
    entry = "mcp http://127.0.0.1:" + port + (transport == "sse" ? "/sse" : "/mcp");
  }
  auto factory = dataset("\"" + entry + "\"");
  for (int i = 0; i < 600 && !factory && factory.error().message.find("no connection") != std::string::npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    factory = dataset("\"" + entry + "\"");
  }
  ASSERT_TRUE(factory.ok()) << factory.error().message;
  const auto environment = opened(*factory);
  EXPECT_THAT(texts(environment->step(call("add", R"({"a": 407})"))), ElementsAre("408"));
  EXPECT_THAT(texts(environment->step(call("add", R"({"a": "x"})"))), ElementsAre(HasSubstr("a: ")));
  EXPECT_THAT(texts(environment->step(call("note", R"({"text": "one"})"))), ElementsAre("1 notes"));
  const Reply failed = environment->step(call("fail", R"({"reason": "no such city"})"));
  EXPECT_THAT(texts(failed), ElementsAre(HasSubstr("fail")));
  EXPECT_EQ(failed.status, "error");
  EXPECT_EQ(environment->step("408").reward, 1);
}

INSTANTIATE_TEST_SUITE_P(PackagesAndTransports, RealMcpServers,
                         ::testing::Combine(::testing::Values("earlier_adapters", "mcp"),
                                            ::testing::Values("stdio", "sse", "streamable-http")),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param).substr(0, 5);
                         });

}  // namespace
}  // namespace carnot
