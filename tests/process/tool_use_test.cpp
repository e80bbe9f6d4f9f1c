// Tools in episodes of data sets and processes: Python functions and MCP servers, through what their authors write.
#include "carnot/worlds/tool_use/tool_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <future>
#include <thread>
#include <tuple>

#include "carnot/core/base/json.h"
#include "carnot/core/base/log.h"
#include "carnot/core/env/environment_boundary.h"
#include "carnot/core/subprocess/line_program.h"
#include "carnot/core/text/chat_families.h"
#include "carnot/worlds/dataset/environment.h"
#include "carnot/worlds/entries.h"
#include "testing/chat_templates.h"
#include "testing/paths.h"
#include "testing/prepared_environment.h"
#include "testing/small_tokenizer.h"
#include "testing/test_packages.h"

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kTests = std::string(CARNOT_SOURCE_DIR) + "/tests/process/";
const std::string kFunctions = kTests + "tool_functions.py:";
const std::string kServer = "mcp python3 " + kTests + "mcp_server.py";

/// A response that calls one tool.
PolicyResponse call(const std::string& tool, const std::string& arguments, const std::string& id = "") {
  PolicyResponse response("I look.");
  response.tool_calls = {{.name = tool, .arguments = arguments, .id = id}};
  return response;
}

PolicyResponse calls(std::vector<ToolCall> all) {
  PolicyResponse response("I look.");
  response.tool_calls = std::move(all);
  return response;
}

std::vector<std::string> texts(const Reply& reply) {
  std::vector<std::string> all;
  for (const ToolMessage& result : reply.results) all.push_back(result.text);
  return all;
}

class ToolUseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("CARNOT_PYTHON", CARNOT_SOURCE_DIR "/python", 1);
    folder_ =
        std::filesystem::path(::testing::TempDir()) / ("carnot_tools_" + std::to_string(::getpid()) + "_" +
                                                       ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "rows.jsonl") << R"({"question": "12 * 34?", "answer": "408"})" << "\n";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Result<std::shared_ptr<EnvironmentFactory>> dataset(const std::string& tools,
                                                      std::vector<std::string> settings = {}) const {
    const std::string rows = (folder_ / "rows.jsonl").string();
    settings.insert(settings.end(), {"train_file=" + rows, "test_file=" + rows, "tools=[" + tools + "]"});
    return testing::prepared(make_dataset(), settings);
  }

  std::string error_of(const std::string& tools, const std::vector<std::string>& settings = {}) const {
    const auto factory = dataset(tools, settings);
    return factory ? "" : factory.error().message;
  }

  std::filesystem::path folder_{};
};

/// An episode that is open.
std::unique_ptr<Environment> opened(const std::shared_ptr<EnvironmentFactory>& factory, std::int64_t index = 0) {
  auto environment = factory->make(Split::Train, index);
  (void)environment->open();
  return environment;
}

/// What a step throws.
std::string failure_of(Environment& environment, const PolicyResponse& response) {
  try {
    (void)environment.step(response);
  } catch (const std::runtime_error& failure) {
    return failure.what();
  }
  return "";
}

TEST_F(ToolUseTest, AQuestionIsAnsweredWithAPythonFunctionOfThreeLines) {
  const auto factory = dataset("\"" + kFunctions + "multiply\"").value();
  const auto environment = factory->make(Split::Train, 0);
  const Opening opening = environment->open();
  check_opening(opening);
  ASSERT_EQ(opening.tools.size(), 1u);
  EXPECT_EQ(opening.tools[0].json(),
            R"({"type":"function","function":{"name":"multiply","description":"Multiplies two numbers.",)"
            R"("parameters":{"type":"object","properties":{"a":{"type":"number","description":"the first"},)"
            R"("b":{"type":"number","description":"the second"}},"required":["a","b"]}}})");
  EXPECT_EQ(environment->protocol().max_turns, 1 + 8 + 1);
  const Reply result = environment->step(call("multiply", R"({"a": 12, "b": 34})", "abc"));
  check_reply(result);
  EXPECT_EQ(result.form, ReplyForm::ToolResult);
  EXPECT_THAT(texts(result), ElementsAre("408.0"));
  EXPECT_EQ(result.results[0].call_id, "abc");
  EXPECT_EQ(result.tool, "multiply");
  EXPECT_EQ(result.status, "ok");
  EXPECT_EQ(result.reward, 0);
  EXPECT_FALSE(result.done);
  const Reply last = environment->step("408");
  EXPECT_TRUE(last.done);
  EXPECT_EQ(last.reward, 1);
  EXPECT_EQ(last.measures.at("tool_calls"), 1);
  EXPECT_EQ(last.measures.at("tool_errors"), 0);
}

TEST_F(ToolUseTest, AToolOfThreeLinesIsOffered) {
  const auto environment = opened(dataset("\"" CARNOT_SOURCE_DIR "/python/letter_count.py:count_letter\"").value());
  EXPECT_THAT(texts(environment->step(call("count_letter", R"({"word": "Strawberry", "letter": "r"})"))),
              ElementsAre("3"));
}

TEST_F(ToolUseTest, CodeOfThePolicyRunsInASandbox) {
  const auto factory =
      dataset("python, code_interpreter",
              {"sandbox.least=limited", "sandbox.interpreter=/usr/bin/python3", "sandbox.seconds=1", "sandbox.warm=1"})
          .value();
  const auto environment = opened(factory);
  const Reply reply = environment->step(calls({{.name = "python", .arguments = R"x({"code": "print(12 * 34)"})x"},
                                               {.name = "code_interpreter", .arguments = R"({"code": "1 / 0"})"}}));
  check_reply(reply);
  EXPECT_EQ(texts(reply).at(0), "408");
  EXPECT_THAT(texts(reply).at(1), HasSubstr("ZeroDivisionError: division by zero"));
  const Reply late = environment->step(call("python", R"({"code": "while True: pass"})"));
  EXPECT_EQ(late.status, "timeout");
  EXPECT_THAT(texts(late), ElementsAre("Error: the program was stopped: it takes longer than 1 s."));
  EXPECT_EQ(environment->branching(), Branching::Cloned);
  EXPECT_EQ(environment->step("408").reward, 1);
}

TEST_F(ToolUseTest, ASandboxFailureIsNotAReward) {
  const auto launcher = folder_ / "carnot-sandbox";
  std::filesystem::copy_file(build_path("carnot-sandbox"), launcher);
  ::setenv("CARNOT_SANDBOX", launcher.c_str(), 1);
  const auto factory =
      dataset("python", {"sandbox.least=limited", "sandbox.interpreter=/usr/bin/python3", "sandbox.warm=0"}).value();
  ::unsetenv("CARNOT_SANDBOX");
  const auto ask = [&] { return failure_of(*opened(factory), call("python", R"({"code": "1 / 0"})")); };
  EXPECT_EQ(ask(), "") << "what the code gets wrong is a result";
  std::filesystem::rename(launcher, folder_ / "elsewhere");
  EXPECT_THAT(ask(), HasSubstr("sandbox: cannot start"));
  std::filesystem::rename(folder_ / "elsewhere", launcher);
  EXPECT_EQ(ask(), "");
}

TEST_F(ToolUseTest, ToolsAreCalledBetweenTagsInOneMessage) {
  const auto factory = dataset("python, calculator", {"tool_calls=tags", "max_tool_calls=2", "sandbox.least=limited",
                                                      "sandbox.interpreter=/usr/bin/python3", "sandbox.show_last=true"})
                           .value();
  const auto environment = factory->make(Split::Train, 0);
  EXPECT_TRUE(environment->open().tools.empty());
  EXPECT_THAT(environment->protocol().stop_strings, ElementsAre("</python>", "</calculator>"));
  EXPECT_THAT(environment->protocol().action_tags, ElementsAre("answer", "python", "calculator"));
  const Reply first = environment->step("<think> so </think> <python>\n12 * 34\n</python>");
  check_reply(first);
  EXPECT_EQ(first.form, ReplyForm::Inline);
  EXPECT_EQ(first.text, " <result>\n408\n</result>");
  EXPECT_EQ(first.tool, "python");
  EXPECT_EQ(environment->step("<calculator> 2 + 2 </calculator>\n").text, " <result>\n4\n</result>");
  EXPECT_EQ(environment->step("<python>1</python>").status, "no_calls_left");
  const Reply last = environment->step("408");
  EXPECT_TRUE(last.done);
  EXPECT_EQ(last.reward, 1);
  EXPECT_EQ(last.measures.at("tool_calls"), 2);
  const auto other = opened(factory);
  EXPECT_TRUE(other->step("</python>").done);  // no pair: an answer
}

TEST_F(ToolUseTest, OnlyToolsWithOneStringArgumentCanBeCalledByTags) {
  EXPECT_THAT(error_of("\"" + kFunctions + "multiply\"", {"tool_calls=tags"}),
              HasSubstr("env.tool_calls: tags: the tool multiply has to require one argument"));
}

TEST_F(ToolUseTest, ASandboxBelowTheLeastLevelIsAnErrorBeforeTheRun) {
  EXPECT_THAT(error_of("python", {"sandbox.interpreter=/nowhere/python"}),
              HasSubstr("env.sandbox: \"/nowhere/python\" is not an interpreter of Python that works"));
}

TEST_F(ToolUseTest, AServerThatIsAwayIsAnInfrastructureFailure) {
  const auto environment = opened(dataset("python", {"sandbox.url=http://127.0.0.1:1"}).value());
  EXPECT_THAT(failure_of(*environment, call("python", R"({"code": "1"})")), HasSubstr("http://127.0.0.1:1/run_code"));
}

TEST_F(ToolUseTest, ThePolicysMistakesAreResultsThatSaySo) {
  const auto environment = opened(
      dataset("calculator, \"" + kFunctions + "fault\", \"" + kFunctions + "weather\"", {"max_tool_calls=20"}).value());
  const auto answer = [&](const std::string& tool, const std::string& arguments) {
    const Reply reply = environment->step(call(tool, arguments));
    return reply.status + (reply.valid_action ? ": " : " (invalid): ") + texts(reply).at(0);
  };
  EXPECT_EQ(answer("lookup", "{}"), "unknown_tool (invalid): no tool lookup; there is: calculator, fault, weather");
  EXPECT_THAT(answer("calculator", R"({"expr": "1"})"),
              AllOf(HasSubstr("bad_arguments (invalid): Error: the arguments of calculator"), HasSubstr("expression")));
  EXPECT_THAT(answer("calculator", R"({"expression": 5})"), HasSubstr("expression: "));
  EXPECT_EQ(answer("calculator", R"({"expression": "1 /"})"), "error: Error: expected a number, found the end");
  EXPECT_EQ(answer("fault", R"({"what": "raise"})"), "error: Error: ValueError: no such city");
  EXPECT_EQ(answer("fault", R"({"what": "right", "more": 1})"),
            "bad_arguments (invalid): Error: no parameter more; there is: what");
  EXPECT_EQ(answer("weather", R"({"place": {"city": "Lima", "height": 3}, "unit": "kelvin"})"),
            R"(ok: {"city": "Lima", "unit": "KELVIN", "days": null})");
  EXPECT_THAT(answer("weather", R"({"place": {"city": 5}})"), HasSubstr("place.city: "));
  EXPECT_THAT(answer("weather", R"({"place": {"city": "Lima"}, "unit": "rankine"})"), HasSubstr("unit: "));
  PolicyResponse unread("<tool_call>{</tool_call>");
  unread.problem = "this tool call cannot be read: it ends early";
  const Reply reply = environment->step(unread);
  EXPECT_THAT(texts(reply), ElementsAre("Error: this tool call cannot be read: it ends early"));
  EXPECT_FALSE(reply.valid_action);
  const Reply last = environment->step("408");
  EXPECT_EQ(last.measures.at("tool_calls"), 10);
  EXPECT_EQ(last.measures.at("tool_errors"), 9);
}

TEST_F(ToolUseTest, SeveralCallsOfOneResponseAreAnsweredInTheirOrder) {
  const auto environment = opened(dataset("calculator, \"" + kFunctions + "multiply\"").value());
  const Reply reply =
      environment->step(calls({{.name = "multiply", .arguments = R"({"a": 2, "b": 3})", .id = "one"},
                               {.name = "calculator", .arguments = R"({"expression": "2**10"})", .id = "two"},
                               {.name = "nothing", .arguments = "{}", .id = "three"}}));
  EXPECT_THAT(texts(reply), ElementsAre("6.0", "1024", HasSubstr("no tool nothing")));
  EXPECT_EQ(reply.results[1].call_id, "two");
  EXPECT_EQ(reply.tool, "multiply");
  EXPECT_FALSE(reply.valid_action);
}

TEST_F(ToolUseTest, CallsAreLimitedAndTheEpisodeStillEnds) {
  const auto environment = opened(dataset("calculator", {"max_tool_calls=2"}).value());
  const PolicyResponse ask = call("calculator", R"({"expression": "1"})");
  EXPECT_THAT(texts(environment->step(ask)), ElementsAre("1"));
  const Reply both = environment->step(calls({ask.tool_calls[0], ask.tool_calls[0]}));
  EXPECT_THAT(texts(both), ElementsAre("1", "Error: no tool calls are left. Answer without them."));
  EXPECT_EQ(environment->step(ask).status, "no_calls_left");
  const Reply last = environment->step(ask);
  EXPECT_TRUE(last.done) << "what insists on calling is the answer";
  EXPECT_EQ(last.reward, 0);
  EXPECT_EQ(last.measures.at("tool_calls"), 2);
  EXPECT_EQ(environment->protocol().max_turns, 4);
}

TEST_F(ToolUseTest, LongResultsAreCutWithAMark) {
  const auto environment = opened(dataset("\"" + kFunctions + "fault\"", {"tool_output=10"}).value());
  std::string ten;
  for (int i = 0; i < 10; ++i) ten += "\u00e4";
  EXPECT_THAT(texts(environment->step(call("fault", R"({"what": "long"})"))),
              ElementsAre(ten + "\n[90 more characters are cut off]"));
  EXPECT_EQ(cut_output("abc", 3), "abc");
}

TEST_F(ToolUseTest, FailuresAroundAFunctionAreNotRewards) {
  const auto factory = dataset("\"" + kFunctions + "fault\"", {"tool_timeout=2"}).value();
  const auto ask = [&](const std::string& what) {
    const auto environment = opened(factory);
    return failure_of(*environment, call("fault", R"({"what": ")" + what + "\"}"));
  };
  EXPECT_THAT(ask("connection"), HasSubstr("RuntimeError: cannot look it up"));
  EXPECT_THAT(ask("unavailable"), HasSubstr("Unavailable: over the quota"));
  EXPECT_THAT(ask("hang"), HasSubstr("did not answer within 2"));
  EXPECT_EQ(ask("right"), "") << "a new process has taken over";
  EXPECT_THAT(ask("exit"), HasSubstr("exited with status 3"));
  EXPECT_EQ(ask("garbage"), "") << "what a function prints is not its answer";
}

TEST_F(ToolUseTest, FunctionsRunAtOnce) {
  const auto factory = dataset("\"" + kFunctions + "meet\", \"" + kFunctions + "together\"").value();
  for (const std::string tool : {"meet", "together"}) {
    std::vector<std::string> said(2);
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&, t] {
        const auto environment = opened(factory);
        said[t] = texts(environment->step(call(tool, R"({"name": "caller )" + std::to_string(t) + "\"}"))).at(0);
      });
    for (std::thread& thread : threads) thread.join();
    const bool swaps = tool == "meet";
    EXPECT_EQ(said[0], swaps ? "caller 1" : "caller 0");
    EXPECT_EQ(said[1], swaps ? "caller 0" : "caller 1");
  }
}

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

TEST_F(ToolUseTest, AFunctionThatChangesStateRulesOutBranching) {
  EXPECT_EQ(opened(dataset("\"" + kFunctions + "book\"").value())->branching(), Branching::Refused);
  const auto pure = opened(dataset("calculator, \"" + kFunctions + "multiply\"").value());
  EXPECT_EQ(pure->branching(), Branching::Cloned);
  pure->step(call("multiply", R"({"a": 1, "b": 2})"));
  const auto copy = pure->clone();
  EXPECT_EQ(copy->anchor(), pure->anchor());
  pure->step(call("multiply", R"({"a": 1, "b": 3})"));
  EXPECT_NE(copy->anchor(), pure->anchor());
  EXPECT_EQ(copy->step("408").measures.at("tool_calls"), 1);
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

TEST_F(ToolUseTest, UnusableToolsAreAllReportedBeforeTheRun) {
  EXPECT_THAT(error_of("abacus, \"/nowhere.py:f\", search /nowhere.jsonl, \"mcp no_such_program\", \"mcp 'x\""),
              AllOf(HasSubstr("env.tools: \"abacus\": expected calculator, python, code_interpreter"),
                    HasSubstr("env.tools: /nowhere.py: no such file"), HasSubstr("env.tools: /nowhere.jsonl"),
                    HasSubstr("cannot start \"no_such_program\""), HasSubstr("a quote ' does not end")));
  EXPECT_THAT(error_of("\"" + kFunctions + "no_hint\""), HasSubstr("no_hint: parameter query has no type hint"));
  EXPECT_THAT(error_of("\"" + kFunctions + "odd_hint\""), HasSubstr("has the type Thread; known: str, int"));
  EXPECT_THAT(error_of("\"" + kFunctions + "nothing\""), HasSubstr("has no function nothing"));
  EXPECT_THAT(error_of("calculator, calculator"), HasSubstr("both have a tool calculator"));
  EXPECT_THAT(error_of("\"mcp echo hello\""), HasSubstr("line 1"));
  EXPECT_THAT(error_of("\"mcp sleep 30\"", {"tool_start_timeout=0.3"}), HasSubstr("did not answer initialize in time"));
  EXPECT_THAT(error_of("\"" + kServer + " --version 1999-01-01\""),
              HasSubstr("speaks protocol version \"1999-01-01\"; expected one of 2024-11-05"));
}

TEST_F(ToolUseTest, AProcessKeepsItsOwnToolsAndReceivesOnlyCallsOfThem) {
  const auto factory =
      testing::prepared(make_process(), {"command=[python3, " + kTests + "tool_environment.py]", "tools=[calculator]"})
          .value();
  const auto environment = factory->make(Split::Train, 3);
  const Opening opening = environment->open();
  ASSERT_EQ(opening.tools.size(), 2u);
  EXPECT_EQ(opening.tools[0].name, "look");
  EXPECT_EQ(opening.tools[1].name, "calculator");
  EXPECT_THAT(texts(environment->step(call("calculator", R"({"expression": "2+2"})"))), ElementsAre("4"));
  const ToolCall look{.name = "look", .arguments = "{}", .id = "l"},
      sum{.name = "calculator", .arguments = R"({"expression": "1+1"})", .id = "s"};
  EXPECT_THAT(texts(environment->step(calls({sum, look, sum}))), ElementsAre("2", "you see 1", "2"));
  EXPECT_THAT(texts(environment->step(calls({look}))), ElementsAre("you see 2"));
  EXPECT_THAT(texts(environment->step(call("jump", "{}"))), ElementsAre("no such thing as jump"));
  const Reply last = environment->step("done");
  EXPECT_TRUE(last.done);
  EXPECT_EQ(last.reward, 3) << "what the process itself was called for";
  EXPECT_EQ(last.measures.at("tool_calls"), 3);
}

TEST_F(ToolUseTest, TwoToolsWithTheSameNameFailTheEpisode) {
  const auto factory = testing::prepared(make_process(), {"command=[python3, " + kTests + "tool_environment.py]",
                                                          "tools=[calculator]", "settings=[tool=calculator]"})
                           .value();
  const auto environment = factory->make(Split::Train, 3);
  EXPECT_THROW(check_opening(environment->open()), EnvironmentFailure);
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

/// Every message of an episode in the family's own text, with the calls as the policy would write them.
std::string conversation(const ChatFamily& chat, Environment& environment, const std::vector<PolicyResponse>& plan) {
  const Opening opening = environment.open();
  std::vector<std::string> tools;
  for (const ToolDescription& tool : opening.tools) tools.push_back(tool.json());
  std::vector<Message> messages{{.role = "user", .content = opening.user}};
  std::string text = chat.tokenizer().decode(chat.render_opening(messages, "", tools).tokens);
  for (const PolicyResponse& said : plan) {
    const auto tokens =
        said.tool_calls.empty() ? chat.spoken(said.text, "", true) : chat.spoken_calls("", said.tool_calls, "");
    const std::string spoken = chat.tokenizer().decode(tokens);
    const PolicyResponse heard = chat.parse_response(spoken);
    EXPECT_EQ(heard.tool_calls, said.tool_calls);
    const Reply reply = environment.step(heard);
    messages.push_back(
        {.role = "assistant", .content = said.tool_calls.empty() ? said.text : "", .tool_calls = said.tool_calls});
    text += spoken + chat.tokenizer().decode(std::vector<TokenId>{chat.stop_tokens().front()});
    if (reply.done) return text;
    std::vector<Message> results;
    for (const ToolMessage& result : reply.results)
      results.push_back({.role = "tool", .content = result.text, .tool_call_id = result.call_id});
    messages.insert(messages.end(), results.begin(), results.end());
    text += chat.tokenizer().decode(chat.render_reply(results, "", true).tokens);
    EXPECT_EQ(text, chat.tokenizer().decode(chat.render_opening(messages, "", tools).tokens))
        << chat.name() << ": turn by turn is what the format writes at once";
  }
  return text;
}

const Tokenizer& tokenizer_of_all_families() {
  static const Tokenizer tokenizer =
      Tokenizer::parse(
          train_byte_level_bpe(
              std::vector<std::string>{"name arguments"},
              {.vocab_size = 290,
               .added_tokens = {"<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|start_header_id|>",
                                "<|end_header_id|>", "<|eot_id|>", "<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]",
                                "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"}})
              .value(),
          "small")
          .value();
  return tokenizer;
}

TEST_F(ToolUseTest, EpisodesAreWrittenInTheOwnFormatOfEveryFamily) {
  const auto factory = dataset("calculator").value();
  for (const std::string name : {"qwen2.5", "qwen3", "llama3.1", "mistral", "mistral_nemo"}) {
    const std::unique_ptr<ChatFamily> chat = name == "llama3.1"
                                                 ? testing::golden_template_chat(name)
                                                 : make_chat_family(name, tokenizer_of_all_families()).value();
    const std::string id = name.starts_with("mistral") ? "abcdef123" : "";
    const auto environment = factory->make(Split::Train, 0);
    const std::string text =
        conversation(*chat, *environment,
                     {call("calculator", R"({"expression": "12 * 34"})", id), call("calculator", "{}", id), "408"});
    EXPECT_THAT(text, AllOf(HasSubstr("12 * 34?"), HasSubstr("\"expression\": \"12 * 34\""), HasSubstr("408"),
                            HasSubstr("do not fit")))
        << name;
  }
}

struct Tally {
  int whole = 0, lost = 0, wrong = 0;
};

/// Calls fault tools in its own order; each reward is 1 if every result was "right", and missing otherwise.
void play(const EnvironmentFactory& factory, const std::vector<std::string>& faults, std::int64_t index, Tally& tally) {
  try {
    const auto environment = factory.make(Split::Train, index);
    (void)environment->open();
    for (std::int64_t turn = 0; turn < 3; ++turn) {
      const std::string& what = faults[static_cast<std::size_t>((index * 7 + turn * turn) % std::ssize(faults))];
      const Reply reply = environment->step(call("fault", R"({"what": ")" + what + "\"}"));
      check_reply(reply);
      if (reply.reward != 0 || reply.done || (texts(reply).at(0) != "right" && what != "raise")) ++tally.wrong;
    }
    const Reply last = environment->step("408");
    if (last.reward != 1 || last.outcome != Outcome::Finished) ++tally.wrong;
    ++tally.whole;
  } catch (const std::runtime_error&) {
    ++tally.lost;
  }
}

Tally play_many(const EnvironmentFactory& factory, const std::vector<std::string>& faults, int episodes) {
  constexpr int kThreads = 4;
  std::vector<Tally> tallies(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = t; i < episodes; i += kThreads) play(factory, faults, i, tallies[t]);
    });
  for (std::thread& thread : threads) thread.join();
  Tally all;
  for (const Tally& one : tallies) {
    all.whole += one.whole;
    all.lost += one.lost;
    all.wrong += one.wrong;
  }
  return all;
}

/// Whether an episode without faults works again: at once, or when the pauses between restarts are over.
bool goes_on(const EnvironmentFactory& factory) {
  Tally tally;
  for (int attempt = 0; attempt < 300 && tally.whole == 0; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    play(factory, {"right"}, 0, tally);
  }
  return tally.whole > 0 && tally.wrong == 0;
}

int episodes_of_faults() {
  const char* wanted = std::getenv("CARNOT_FAULT_CASES");
  return wanted != nullptr && std::string_view(wanted) == "all" ? 1000 : 60;
}

TEST_F(ToolUseTest, OfManyFaultsOfAServerNoneBecomesARewardAndNoneStopsTheRest) {
  const auto factory = dataset("\"" + kServer + "\"", {"tool_timeout=1"}).value();
  const std::vector<std::string> faults{
      "right", "kill",  "right",    "exit",  "right", "hang",       "slow",           "right",        "garbage",
      "cut",   "right", "wrong id", "right", "right", "no content", "internal error", "close output", "say more"};
  const int episodes = episodes_of_faults();
  const Tally all = play_many(*factory, faults, episodes);
  EXPECT_EQ(all.wrong, 0);
  EXPECT_EQ(all.whole + all.lost, episodes);
  EXPECT_GE(all.lost, episodes / 3);
  EXPECT_TRUE(goes_on(*factory)) << all.whole << "  worked before: that depends on which share a server with a fault";
}

TEST_F(ToolUseTest, OfManyFaultsOfAFunctionNoneBecomesARewardAndNoneStopsTheRest) {
  const auto factory = dataset("\"" + kFunctions + "fault\"", {"tool_timeout=1"}).value();
  const std::vector<std::string> faults{"right", "right", "raise", "right",    "connection", "right", "right",
                                        "exit",  "right", "right", "hang",     "right",      "right", "garbage",
                                        "right", "right", "right", "children", "sys.exit"};
  const int episodes = episodes_of_faults();
  const Tally all = play_many(*factory, faults, episodes);
  EXPECT_EQ(all.wrong, 0);
  EXPECT_EQ(all.whole + all.lost, episodes);
  EXPECT_GE(all.lost, episodes / 20);
  EXPECT_TRUE(goes_on(*factory)) << all.whole << "  worked before";
}

TEST_F(ToolUseTest, EpisodesAreTheSameOnOneThreadAndOnFour) {
  const auto factory = dataset("calculator, \"" + kFunctions + "multiply\", \"" + kServer + "\"").value();
  const auto transcript = [&](int threads) {
    std::vector<std::string> said(24);
    std::vector<std::thread> workers;
    for (int t = 0; t < threads; ++t)
      workers.emplace_back([&, t] {
        for (std::size_t i = static_cast<std::size_t>(t); i < said.size(); i += static_cast<std::size_t>(threads)) {
          const auto environment = opened(factory, static_cast<std::int64_t>(i));
          const std::string number = std::to_string(i);
          for (const PolicyResponse& response :
               {call("multiply", R"({"a": 2, "b": )" + number + "}"), call("count_up", "{}"), call("count_up", "{}"),
                call("calculator", R"({"expression": ")" + number + "/7\"}"), PolicyResponse(number)}) {
            const Reply reply = environment->step(response);
            said[i] += shown_text(reply) + " " + std::to_string(reply.reward) + " " + environment->anchor() + "\n";
          }
        }
      });
    for (std::thread& worker : workers) worker.join();
    return said;
  };
  EXPECT_EQ(transcript(4), transcript(1));
}

}  // namespace
}  // namespace carnot
