#include "carnot/worlds/word_problems/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "carnot/tools/calculator/expression.h"
#include "testing/field_settings.h"

namespace carnot {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::set<std::string> sentences_of(Wording wording) {
  std::set<std::string> sentences;
  RandomStream random(3);
  for (int i = 0; i < 400; ++i) {
    const WordProblem problem = invent_problem(wording, 4, random);
    sentences.insert(problem.beginning);
    for (const StoryStep& step : problem.steps) sentences.insert(step.sentence);
  }
  return sentences;
}

TEST(WordProblems, HaveTheAnswerThatTheirExpressionsCompute) {
  RandomStream random(1);
  for (int i = 0; i < 2000; ++i) {
    const WordProblem problem = invent_problem(i % 2 ? Wording::Training : Wording::HeldOut, 1 + i % 4, random);
    ASSERT_EQ(problem.steps.size(), 1u + i % 4);
    for (const StoryStep& step : problem.steps) {
      ASSERT_EQ(exact_text(calculate(step.expression).value()), std::to_string(step.value)) << problem.text();
      ASSERT_GE(step.value, 1) << problem.text();
      ASSERT_LE(step.value, kLargestPile) << problem.text();
    }
    for (std::size_t k = 1; k < problem.steps.size(); ++k)
      ASSERT_TRUE(problem.steps[k].expression.starts_with(std::to_string(problem.steps[k - 1].value) + " "));
    ASSERT_EQ(problem.text().find('{'), std::string::npos) << problem.text();
  }
}

TEST(WordProblems, OfValidationShareNoSentenceWithTraining) {
  const auto training = sentences_of(Wording::Training), held_out = sentences_of(Wording::HeldOut);
  for (const std::string& sentence : held_out) EXPECT_FALSE(training.contains(sentence)) << sentence;
  EXPECT_GT(training.size(), 300u);
}

std::unique_ptr<EnvironmentFactory> prepared(const std::map<std::string, std::string>& settings) {
  auto factory = make_word_problems();
  testing::FieldSettings fields(settings);
  factory->fields(fields);
  const Status status = factory->prepare(7);
  EXPECT_TRUE(status.ok()) << status.error().message;
  return factory;
}

/// Plays the script of a training task to its end; the turns that it took.
int play(const EnvironmentFactory& factory, Environment& environment, Reply& last) {
  const auto agent = factory.script(environment, 1, RandomStream(0));
  environment.open();
  std::string seen;
  int turns = 0;
  for (last = {}; !last.done; ++turns) {
    last = environment.step(agent->respond(seen));
    seen = shown_text(last);
    EXPECT_TRUE(last.done || last.status == "ok") << seen;
  }
  return turns;
}

TEST(WordProblems, AreSolvedByTheirScriptInEitherStyleOfCalls) {
  for (const char* style : {"tags", "chat"}) {
    const auto factory = prepared({{"tool_calls", style}});
    for (std::int64_t index = 0; index < 50; ++index) {
      const auto environment = factory->make(index % 2 ? Split::Train : Split::Validation, index);
      Reply last;
      const int turns = play(*factory, *environment, last);
      EXPECT_EQ(std::to_string(turns - 1), environment->info().at("operations"));
      EXPECT_TRUE(last.success) << style;
      EXPECT_EQ(last.reward, 1);
      EXPECT_EQ(last.measures.at("tool_calls"), turns - 1);
      EXPECT_EQ(last.answer, environment->ground_truth().front());
    }
  }
}

TEST(WordProblems, MayBeDemonstratedWithFewerOperationsThanTasksHave) {
  const auto factory = prepared({{"operation_shares", "0,0,1,1"}, {"demonstrated_shares", "1,1"}});
  for (std::int64_t index = 0; index < 50; ++index) {
    EXPECT_THAT(factory->make_demonstrated(index, 0.5)->info().at("operations"), AnyOf("1", "2"));
    EXPECT_THAT(factory->make(Split::Train, index)->info().at("operations"), AnyOf("3", "4"));
  }
}

TEST(WordProblems, PayForTheRightNumberOnly) {
  const auto factory = prepared({});
  const std::string right = factory->make(Split::Train, 0)->ground_truth().front();
  const auto reward = [&](const std::string& response) {
    return factory->make(Split::Train, 0)->step(response).reward;
  };
  EXPECT_EQ(reward("<answer> " + right + " </answer>"), 1);
  EXPECT_EQ(reward("So <answer>" + right + "0</answer>"), 0);
  EXPECT_EQ(reward("The answer is " + right), 0);
  const Reply none = factory->make(Split::Train, 0)->step("The answer is " + right);
  EXPECT_EQ(none.outcome, Outcome::Unparsable);
  EXPECT_FALSE(none.valid_action);
}

TEST(WordProblems, SayAllThatIsWrongWithTheirOptions) {
  const WordProblemOptions wrong{.operation_shares = {0, 0}, .demonstrated_shares = {1, 1, 1, 1, 1}};
  EXPECT_THAT(wrong.problems(), ElementsAre(HasSubstr("env.operation_shares"), HasSubstr("env.demonstrated_shares")));
}

}  // namespace
}  // namespace carnot
