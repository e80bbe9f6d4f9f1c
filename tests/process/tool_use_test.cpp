// Tools in episodes of data sets and processes, through what their authors write.
#include "carnot/worlds/tool_use/tool_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "carnot/core/env/environment_boundary.h"
#include "carnot/core/text/chat_families.h"
#include "carnot/worlds/entries.h"
#include "testing/chat_templates.h"
#include "testing/paths.h"
#include "testing/small_tokenizer.h"
#include "tool_use.h"

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace carnot::testing;  // NOLINT: the episodes of this test

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
