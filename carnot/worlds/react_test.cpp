#include "carnot/core/env/react.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "carnot/core/env/environment_boundary.h"
#include "testing/field_settings.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using ReactSettings = std::map<std::string, std::string>;

std::unique_ptr<EnvironmentFactory> factory_of(const std::string& name, const ReactSettings& settings) {
  auto factory = make_environment_factory(name).value();
  testing::FieldSettings fields(settings);
  factory->fields(fields);
  EXPECT_EQ(fields.unused(), std::vector<std::string>{});
  const Status prepared = factory->prepare(5);
  EXPECT_TRUE(prepared.ok()) << (prepared ? "" : prepared.error().message);
  return factory;
}

std::string task_folder(const std::string& name) { return source_path("tests/tasks/" + name); }

TEST(ParseReact, TakesThoughtAndAction) {
  const auto step = parse_react("Thought: I look.\nIt is near.\nAction: go to desk 1\nObservation: you see");
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(step->thought, "I look.\nIt is near.");
  EXPECT_EQ(step->action, "go to desk 1");
  EXPECT_EQ(step->name, "");
}

TEST(ParseReact, TakesArgumentsOfSeveralLinesAndNumberedLabels) {
  const auto step =
      parse_react("**Thought 2:** count\n**Action 2:** python[\nx = [1, 2]\nprint(x[0])\n]\nThought 3: no");
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(step->thought, "count");
  EXPECT_EQ(step->name, "python");
  EXPECT_EQ(step->argument, "x = [1, 2]\nprint(x[0])");
}

TEST(ParseReact, PassesOverTheThoughtsOfAReasoningModel) {
  const auto step = parse_react("<think>\nAction: wrong\n</think>\n\nAction: Search[who wrote Emma?]");
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(step->action, "Search[who wrote Emma?]");
  EXPECT_EQ(step->thought, "");
}

TEST(ParseReact, FindsNothingWhereThereIsNoAction) {
  for (const char* text : {"", "go to desk 1", "the Action: x", "Action:", "Action: \n", "Thought: Action"})
    EXPECT_FALSE(parse_react(text).has_value()) << text;
}

/// A response in an environment's own form, in ReAct's.
std::string react_of(const std::string& response, const std::string& tag) {
  const auto inner = [&](const std::string& name) {
    const auto begin = response.find("<" + name + ">") + name.size() + 2;
    return response.substr(begin, response.find("</" + name + ">") - begin);
  };
  return "Thought: " + inner("think") + "\nAction: " + inner(tag);
}

/// The scripted agent of an environment wins it in ReAct's form as it does in the environment's own: same rewards.
void expect_same_game(const std::string& name, const ReactSettings& settings, const std::string& tag) {
  const auto factory = factory_of(name, settings);
  for (std::int64_t index = 0; index < 3; ++index) {
    const auto own = factory->make(Split::Validation, index);
    const auto agent = factory->script(*own, 1, RandomStream(1));
    own->open();
    const auto react = make_react(factory->make(Split::Validation, index), factory->answer_lead());
    const Opening opening = react->open();
    check_opening(opening);
    check_protocol(react->protocol());
    EXPECT_THAT(opening.system + opening.user, Not(HasSubstr("<action>"))) << "no other form than ReAct's";
    EXPECT_THAT(opening.system, StartsWith("Solve the task step by step."));
    EXPECT_THAT(opening.user, HasSubstr("\nObservation: "));
    Reply reply, shown;
    while (!reply.done) {
      const std::string response = agent->respond(shown_text(reply)).text;
      reply = own->step(response);
      shown = react->step(react_of(response, tag));
      check_reply(shown);
      EXPECT_EQ(shown.reward, reply.reward);
      EXPECT_EQ(shown.penalty, 0);
      ASSERT_EQ(shown.done, reply.done);
      if (shown.done) break;
      EXPECT_THAT(shown.text, StartsWith("Observation: "));
      EXPECT_EQ(shown.form, ReplyForm::UserMessage);
    }
    EXPECT_TRUE(reply.success);
    EXPECT_EQ(shown.success, reply.success);
    EXPECT_EQ(shown.measures.at("unreadable_steps"), 0);
  }
}

TEST(React, PlaysAlfworldAsItsOwnFormDoes) {
  expect_same_game("alfworld", {{"task_source", task_folder("alfworld")}}, "action");
}

TEST(React, PlaysWebshopAsItsOwnFormDoes) {
  expect_same_game("webshop", {{"task_source", task_folder("webshop")}, {"style", "verl_agent"}}, "action");
}

TEST(React, PlaysGridsOfRagen) { expect_same_game("sokoban", {}, "answer"); }

/// What ten moves over slippery ice show when the slips are drawn by `key` from the fourth on.
std::string slides(const EnvironmentFactory& factory, std::uint64_t key) {
  const auto react = make_react(factory.make(Split::Validation, 0), "");
  react->open();
  std::string shown;
  Reply reply;
  for (int move = 0; move < 10 && !reply.done; ++move) {
    if (move == 3) react->redraw(key);
    reply = react->step(std::string("Thought: on\nAction: ") + (move % 2 == 0 ? "Left" : "Right"));
    shown += reply.text;
  }
  return shown;
}

TEST(React, RedrawsWhatTheGameBeneathDraws) {
  const ReactSettings no_holes{
      {"p", "1"}, {"size", "8"}, {"success_rate", "0.4"}, {"max_turns", "10"}, {"max_actions", "10"}};
  const auto factory = factory_of("frozen_lake", no_holes);
  std::set<std::string> ways;
  for (std::uint64_t key = 0; key < 8; ++key) {
    ways.insert(slides(*factory, key));
    EXPECT_EQ(slides(*factory, key), slides(*factory, key));
  }
  EXPECT_GE(ways.size(), 7u);
}

TEST(React, SearchesAndAnswersInEveryProtocolOfOpenQa) {
  for (const std::string protocol : {"search_r1", "arpo", "verl_agent"}) {
    const auto factory =
        factory_of("open_qa", {{"task_source", task_folder("open_qa")}, {"protocol", protocol}, {"passages", "1"}});
    const auto react = make_react(factory->make(Split::Validation, 0), factory->answer_lead());
    const Opening opening = react->open();
    EXPECT_EQ(opening.user, react->info().at("question")) << protocol;
    EXPECT_THAT(opening.system, HasSubstr("search[query]: "));
    EXPECT_THAT(opening.system, HasSubstr("Finish[answer]: "));
    const Reply found = react->step("Thought: I search.\nAction: Search[capital of Peru]");
    EXPECT_THAT(found.text, StartsWith("Observation: Doc 1")) << protocol;
    EXPECT_THAT(found.text, HasSubstr("Lima"));
    EXPECT_THAT(found.text, Not(HasSubstr("<")));
    EXPECT_EQ(found.tool, "search");
    const Reply end = react->step("Action: Finish[" + react->ground_truth().front() + "]");
    EXPECT_TRUE(end.done);
    EXPECT_TRUE(end.success) << protocol;
    EXPECT_EQ(end.reward, 1);
    EXPECT_EQ(end.measures.at("format"), 1) << protocol;
  }
}

TEST(React, CallsToolsAndAnswersInMaths) {
  const auto factory = factory_of(
      "gsm8k",
      {{"train_file", task_folder("train.jsonl")}, {"test_file", task_folder("test.jsonl")}, {"tools", "calculator"}});
  const auto react = make_react(factory->make(Split::Validation, 0), factory->answer_lead());
  const Opening opening = react->open();
  EXPECT_THAT(opening.system, HasSubstr("calculator[expression]: "));
  EXPECT_TRUE(opening.tools.empty());
  EXPECT_EQ(react->step("Action: calculator[3 * 7]").text, "Observation: 21");
  EXPECT_EQ(react->step(R"(Action: calculator[{"expression": "3 * 8"}])").text, "Observation: 24");
  const Reply unknown = react->step("Action: telephone[mother]");
  EXPECT_THAT(unknown.text, HasSubstr("There is no such action."));
  EXPECT_FALSE(unknown.valid_action);
  const Reply end = react->step("Thought: done\nAction: Finish[" + react->ground_truth().front() + "]");
  EXPECT_TRUE(end.success);
  EXPECT_EQ(end.measures.at("tool_calls"), 2);
  EXPECT_EQ(end.measures.at("unreadable_steps"), 1);
}

TEST(React, EndsAfterTheEnvironmentsTurnsEvenIfNothingCanBeRead) {
  const auto factory = factory_of("sokoban", {{"max_turns", "2"}});
  const auto react = make_react(factory->make(Split::Validation, 0), "");
  react->open();
  EXPECT_EQ(react->step("hm").text, "Observation: There is no line \"Action: ...\" in the answer.");
  const auto copy = react->clone();
  for (Environment* one : {react.get(), copy.get()}) {
    const Reply end = one->step("hm");
    EXPECT_TRUE(end.done);
    EXPECT_EQ(end.outcome, Outcome::OutOfTurns);
    EXPECT_EQ(end.reward, 0);
    EXPECT_THROW(one->step("hm"), CheckError);
  }
}

}  // namespace
}  // namespace carnot
