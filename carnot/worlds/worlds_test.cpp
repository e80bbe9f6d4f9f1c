// What every environment in the table must keep, whatever it is about.
#include <gtest/gtest.h>

#include <filesystem>

#include "carnot/core/env/environment.h"
#include "carnot/core/env/environment_boundary.h"
#include "testing/field_settings.h"
#include "testing/paths.h"

namespace carnot {
namespace {

struct Played {
  std::vector<std::string> texts;
  std::vector<double> rewards;
  bool operator==(const Played&) const = default;
};

// Responses that a confused policy could write.
std::string random_response(RandomStream& random) {
  static const std::vector<std::string> pieces = {"<think>",
                                                  "</think>",
                                                  "<answer>",
                                                  "</answer>",
                                                  "<search>",
                                                  "</search>",
                                                  "||",
                                                  "Up",
                                                  "left",
                                                  " || Down || ",
                                                  "7",
                                                  "1,2,3",
                                                  "place 2 at row 1 col 1",
                                                  "\n",
                                                  "\xff",
                                                  "√",
                                                  "<|im_end|>",
                                                  "99999999999999999999,1,1",
                                                  " ",
                                                  "Right",
                                                  ""};
  std::string text;
  for (auto n = random.below(12); n > 0; --n) text += random.pick(pieces);
  if (random.chance(0.7)) text = "<think>" + text + "</think><answer>" + random.pick(pieces) + "</answer>";
  return text;
}

Played play_on(Environment& environment, RandomStream random, int& turns) {
  Played played;
  bool done = false;
  while (!done) {
    const Reply reply = environment.step(random_response(random));
    ++turns;
    EXPECT_LE(reply.penalty, 0);
    EXPECT_LE(turns, environment.protocol().max_turns);
    if (turns > environment.protocol().max_turns) return played;
    played.texts.push_back(reply.text + "|" + environment.anchor());
    played.rewards.push_back(reply.reward);
    done = reply.done;
  }
  return played;
}

/// The folder of small task files, or the environment's own one in it.
std::string task_source_of(const std::string& environment) {
  const std::string tasks = source_path("tests/tasks");
  return std::filesystem::exists(tasks + "/" + environment) ? tasks + "/" + environment : tasks;
}

class EveryEnvironment : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto factory = make_environment_factory(GetParam());
    ASSERT_TRUE(factory.ok()) << factory.error().message;
    factory_ = std::move(factory).value();
    const std::map<std::string, std::string> settings{{"task_source", task_source_of(GetParam())},
                                                      {"sandbox.least", "limited"},
                                                      {"sandbox.interpreter", "/usr/bin/python3"}};
    testing::FieldSettings tasks(settings);
    factory_->fields(tasks);
    const Status prepared = factory_->prepare(1);
    ASSERT_TRUE(prepared.ok()) << prepared.error().message;
  }

  std::unique_ptr<EnvironmentFactory> factory_;
};

TEST_P(EveryEnvironment, SurvivesRandomResponsesWithinItsBudget) {
  for (std::int64_t index = 0; index < 40; ++index) {
    const auto environment = factory_->make(index % 2 ? Split::Train : Split::Validation, index / 2);
    environment->open();
    int turns = 0;
    play_on(*environment, RandomStream(derive_seed(7, "play", static_cast<std::uint64_t>(index))), turns);
    EXPECT_THROW(environment->step("<think></think><answer>Up</answer>"), CheckError) << "done must be final";
  }
}

TEST_P(EveryEnvironment, IsAFunctionOfTaskAndResponses) {
  for (std::uint64_t index = 0; index < 10; ++index) {
    const auto first = factory_->make(Split::Train, static_cast<std::int64_t>(index));
    const auto second = factory_->make(Split::Train, static_cast<std::int64_t>(index));
    EXPECT_EQ(first->open().user, second->open().user);
    int turns = 0, again = 0;
    EXPECT_EQ(play_on(*first, RandomStream(index), turns), play_on(*second, RandomStream(index), again));
  }
}

TEST_P(EveryEnvironment, ContinuesInACopyAsInTheOriginalWhereItMayBeBranched) {
  for (std::uint64_t index = 0; index < 20; ++index) {
    const auto make = [&] { return factory_->make(Split::Train, static_cast<std::int64_t>(index)); };
    const auto original = make();
    original->open();
    RandomStream random(index);
    std::vector<PlayedTurn> played;
    if (index % 2) {
      const std::string response = random_response(random);
      const Reply reply = original->step(response);
      if (reply.done) continue;
      played.push_back({.response = response, .reply_key = key_of(reply)});
    }
    const auto expected_of = [&](Environment& environment) {
      int turns = static_cast<int>(played.size());
      return play_on(environment, random, turns);
    };
    std::vector<std::unique_ptr<Environment>> copies;
    copies.push_back(replay(make, played));
    ASSERT_NE(original->branching(), Branching::Refused) << "methods that branch would refuse it";
    copies.push_back(copy_environment(*original, make, played));
    const Played expected = expected_of(*original);
    for (const auto& copy : copies) EXPECT_EQ(expected_of(*copy), expected);
  }
}

TEST_P(EveryEnvironment, KeepsTrainingAndValidationApart) {
  EXPECT_NE(factory_->make(Split::Train, 0)->info(), factory_->make(Split::Validation, 0)->info());
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  // What these are depends on the user's programs and files: tests/agent, tests/process.
  for (const auto& entry : environments())
    if (entry.name != "agent" && entry.name != "process" && entry.name != "dataset") all.emplace_back(entry.name);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Table, EveryEnvironment, ::testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

TEST(EnvironmentTable, NamesTheKnownEnvironmentsWhenAskedForAnotherOne) {
  const auto factory = make_environment_factory("chess");
  ASSERT_FALSE(factory.ok());
  EXPECT_NE(factory.error().message.find("chess"), std::string::npos);
  EXPECT_NE(factory.error().message.find("skeleton"), std::string::npos);
}

}  // namespace
}  // namespace carnot
