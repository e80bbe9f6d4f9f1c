#include "carnot/worlds/alfworld/environment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "carnot/worlds/entries.h"
#include "testing/field_settings.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using Settings = std::map<std::string, std::string>;

std::unique_ptr<EnvironmentFactory> alfworld_with(const Settings& settings) {
  auto factory = make_alfworld();
  testing::FieldSettings fields(settings);
  factory->fields(fields);
  EXPECT_TRUE(fields.unused().empty());
  return factory;
}

/// Over the small games.
std::unique_ptr<EnvironmentFactory> small_alfworld(Settings settings = {}) {
  settings["task_source"] = source_path("tests/tasks/alfworld");
  auto factory = alfworld_with(settings);
  const Status prepared = factory->prepare(5);
  EXPECT_TRUE(prepared.ok()) << (prepared.ok() ? "" : prepared.error().message);
  return factory;
}

std::string acted(const std::string& action) { return "<think>so</think><action>" + action + "</action>"; }

const Settings kOnlyLooking = {{"task_types", "look_at_obj_in_light"}, {"eval_split", "valid_unseen"}};

// The prompts of verl-agent, to the byte.
TEST(AlfworldConversation, AsksAsVerlAgentDoes) {
  const auto environment = small_alfworld(kOnlyLooking)->make(Split::Validation, 0);
  const Opening opening = environment->open();
  EXPECT_EQ(opening.system, "");
  EXPECT_EQ(opening.assistant_prefix, "");
  const std::string welcome =
      "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, you see a "
      "bed "
      "1, a desk 1, a drawer 2, a drawer 1, a safe 1, a shelf 1, and a sidetable 1.\n\nYour task is to: examine the cd "
      "with "
      "the desklamp.";
  const std::string end =
      "].\n\nNow it's your turn to take an action.\nYou should first reason step-by-step about the current situation. "
      "This "
      "reasoning process MUST be enclosed within <think> </think> tags. \nOnce you've finished your reasoning, you "
      "should "
      "choose an admissible action for current step and present it within <action> </action> tags.\n";
  EXPECT_EQ(
      opening.user,
      "\nYou are an expert agent operating in the ALFRED Embodied Environment.\nYour current observation is: " +
          welcome +
          "\nYour admissible actions of the current situation are: ['go to bed 1'\n 'go to desk 1'\n 'go to drawer 1'"
          "\n 'go to drawer 2'\n 'go to safe 1'\n 'go to shelf 1'\n 'go to sidetable 1'\n 'inventory'\n 'look'" +
          end);

  environment->step(acted("go to bed 1"));
  environment->step(acted("fly"));
  const Reply reply = environment->step(acted("inventory"));
  EXPECT_EQ(reply.form, ReplyForm::FreshPrompt);
  EXPECT_EQ(
      reply.prompt.user,
      "\nYou are an expert agent operating in the ALFRED Embodied Environment. Your task is to: examine the cd with "
      "the desklamp.\nPrior to this step, you have already taken 3 step(s). Below are the most recent 2 observations "
      "and the corresponding actions you took: [Observation 2: 'You arrive at bed 1. On the bed 1, you see a book 1, "
      "and a pillow 1.', Action 2: 'fly']\n[Observation 3: 'Nothing happens.', Action 3: 'inventory']\nYou are now at "
      "step 4 and your current observation is: You are not carrying anything.\nYour admissible actions of the current "
      "situation are: ['examine bed 1'\n 'go to desk 1'\n 'go to drawer 1'\n 'go to drawer 2'\n 'go to safe 1'\n 'go "
      "to "
      "shelf 1'\n 'go to sidetable 1'\n 'inventory'\n 'look'\n 'take book 1 from bed 1'\n 'take pillow 1 from bed 1'" +
          end);
}

TEST(AlfworldConversation, ShowsAsManyPastStepsAsAskedFor) {
  for (const auto& [length, steps] : std::map<int, int>{{0, 0}, {1, 1}, {3, 3}, {9, 4}}) {
    auto settings = kOnlyLooking;
    settings["history_length"] = std::to_string(length);
    const auto environment = small_alfworld(settings)->make(Split::Validation, 0);
    environment->open();
    for (int i = 0; i < 3; ++i) environment->step(acted("look"));
    const std::string prompt = environment->step(acted("look")).prompt.user;
    int found = 0;
    for (auto at = prompt.find("[Observation "); at != std::string::npos; at = prompt.find("[Observation ", at + 1))
      ++found;
    EXPECT_EQ(found, steps);
    EXPECT_EQ(prompt.find("Prior to this step") == std::string::npos, length == 0);
  }
}

TEST(AlfworldConversation, TriesTheLastThirtyCharactersOfAResponseWithoutTags) {
  const auto environment = small_alfworld(kOnlyLooking)->make(Split::Validation, 0);
  environment->open();
  const Reply reply = environment->step("<think>x</think> I think I had better GO TO DESK 1");
  EXPECT_NE(reply.prompt.user.find("Action 1: 'hink i had better go to desk 1']"), std::string::npos);
  EXPECT_FALSE(reply.valid_action);
  environment->step("<think>x</think>               \n               GO TO DESK 1");
  EXPECT_TRUE(environment->anchor().starts_with("You arrive at desk 1.")) << environment->anchor();
}

TEST(AlfworldConversation, PenalisesTheFormAndNothingElse) {
  const auto environment = small_alfworld(kOnlyLooking)->make(Split::Validation, 0);
  environment->open();
  const Reply formless = environment->step("go to desk 1");
  EXPECT_EQ(formless.penalty, -0.1);
  EXPECT_FALSE(formless.valid_action);
  EXPECT_TRUE(environment->anchor().starts_with("You arrive at desk 1.")) << "the action was carried out";
  const Reply unknown = environment->step(acted("dance"));
  EXPECT_EQ(unknown.penalty, 0);
  EXPECT_TRUE(unknown.valid_action) << "the form is right";
  EXPECT_EQ(environment->anchor(), "Nothing happens.");
}

TEST(AlfworldConversation, PaysTenForAWonGameAndEndsAfterFiftySteps) {
  const auto factory = small_alfworld(kOnlyLooking);
  const auto winner = factory->make(Split::Validation, 0);
  winner->open();
  for (const char* action : {"go to drawer 1", "open drawer 1", "take cd 1 from drawer 1", "go to sidetable 1"})
    EXPECT_FALSE(winner->step(acted(action)).done) << action;
  const Reply won = winner->step(acted("use desklamp 1"));
  EXPECT_TRUE(won.done && won.success);
  EXPECT_EQ(won.reward, 10);
  EXPECT_EQ(won.outcome, Outcome::Finished);
  EXPECT_EQ(won.measures.at("actions"), 5);
  EXPECT_EQ(won.measures.at("admissible_actions"), 1);

  const auto idler = factory->make(Split::Validation, 0);
  idler->open();
  EXPECT_EQ(idler->protocol().max_turns, 50);
  for (int i = 0; i < 49; ++i) EXPECT_FALSE(idler->step(i % 2 ? "look" : acted("dance")).done);
  const Reply last = idler->step(acted("look"));
  EXPECT_TRUE(last.done && !last.success);
  EXPECT_EQ(last.reward, 0);
  EXPECT_EQ(last.outcome, Outcome::OutOfTurns);
  EXPECT_EQ(last.measures.at("admissible_actions"), 0.5);
}

TEST(AlfworldConversation, AsksAsRagenDoes) {
  auto settings = kOnlyLooking;
  settings["style"] = "ragen";
  const auto environment = small_alfworld(settings)->make(Split::Validation, 0);
  const Opening opening = environment->open();
  EXPECT_TRUE(opening.system.starts_with("You're a helpful assistant. You are doing a household task"));
  EXPECT_TRUE(opening.user.starts_with("\nTurn 1:\nState:\n-= Welcome to TextWorld, ALFRED! =-\n\n"));
  EXPECT_NE(opening.user.find(
                "the desklamp.\n\nAdmissible actions: [go to bed 1, go to desk 1, go to drawer 1, go to drawer 2, "
                "go to safe 1, go to shelf 1, go to sidetable 1, help, inventory, look]\nYou have 50 actions left."),
            std::string::npos);
  const Reply reply = environment->step("<think>a</think><answer>go to drawer 1 || open drawer 1</answer>");
  EXPECT_TRUE(
      reply.text.starts_with("Reward:\n0.0\n\nTurn 2:\nState:\nYou arrive at drawer 1. The drawer 1 is closed.\n\n"
                             "Admissible actions: [examine drawer 1, go to bed 1"))
      << reply.text << "one action a turn";
  for (const char* action : {"open drawer 1", "take cd 1 from drawer 1", "go to sidetable 1"})
    environment->step(std::string("<think>a</think><answer>") + action + "</answer>");
  const Reply won = environment->step("<think>a</think><answer>use desklamp 1</answer>");
  EXPECT_TRUE(won.done && won.success);
  EXPECT_EQ(won.reward, 10);
  EXPECT_EQ(environment->info().at("task_type"), "look_at_obj_in_light");
}

TEST(AlfworldConversation, TellsTheBareTranscript) {
  auto settings = kOnlyLooking;
  settings["style"] = "transcript";
  const auto environment = small_alfworld(settings)->make(Split::Validation, 0);
  const Opening opening = environment->open();
  EXPECT_EQ(opening.user,
            "You are in the middle of a room. Looking quickly around you, you see a bed 1, a desk 1, a drawer 2, a "
            "drawer 1, a safe 1, a shelf 1, and a sidetable 1.\n\nYour task is to: examine the cd with the desklamp.");
  const Reply reply = environment->step(acted("go to drawer 1"));
  EXPECT_EQ(reply.form, ReplyForm::UserMessage);
  EXPECT_EQ(reply.text, "You arrive at drawer 1. The drawer 1 is closed.");
  EXPECT_EQ(environment->clone()->step(acted("fly")).text, "Nothing happens.");
  for (const char* action : {"open drawer 1", "take cd 1 from drawer 1", "go to sidetable 1"})
    EXPECT_FALSE(environment->step(acted(action)).done) << action;
  const Reply won = environment->step(acted("use desklamp 1"));
  EXPECT_TRUE(won.done && won.success);
  EXPECT_EQ(won.reward, 10);
}

// Whatever the style, the same responses lead to the same rewards, penalties, measures and states.
TEST(AlfworldConversation, IsTheSameGameAsATranscript) {
  const auto stepwise = small_alfworld({{"max_steps", "12"}}),
             transcript = small_alfworld({{"max_steps", "12"}, {"style", "transcript"}});
  for (std::int64_t index = 0; index < 6; ++index) {
    const auto one = stepwise->make(Split::Train, index), other = transcript->make(Split::Train, index);
    one->open();
    other->open();
    const auto agent = stepwise->script(*one, 1, RandomStream(static_cast<std::uint64_t>(index)));
    for (Reply a, b; !a.done;) {
      const PolicyResponse response = index == 0 ? PolicyResponse("no tags") : agent->respond("");
      a = one->step(response);
      b = other->step(response);
      EXPECT_EQ(a.reward, b.reward);
      EXPECT_EQ(a.penalty, b.penalty);
      EXPECT_EQ(a.success, b.success);
      EXPECT_EQ(a.measures, b.measures);
      EXPECT_EQ(one->anchor(), other->anchor());
      ASSERT_EQ(a.done, b.done);
      EXPECT_EQ(b.text, b.done ? "" : other->anchor());
    }
  }
}

bool demonstration_wins(const EnvironmentFactory& factory, std::int64_t index, std::uint64_t seed) {
  const auto environment = factory.make_demonstrated(index, 1);
  const Opening opening = environment->open();
  const auto agent = factory.script(*environment, 1, RandomStream(seed));
  Reply reply;
  for (int turn = 0; turn < environment->protocol().max_turns && !reply.done; ++turn) {
    const PolicyResponse response = agent->respond(shown_text(reply));
    EXPECT_TRUE(response.text.starts_with(opening.assistant_prefix));
    reply = environment->step(response);
    EXPECT_TRUE(reply.valid_action);
  }
  return reply.success;
}

TEST(AlfworldDemonstrations, WinInAnyStyle) {
  for (const char* style : {"verl_agent", "ragen", "transcript"}) {
    const auto factory = small_alfworld({{"style", style}});
    for (std::int64_t index = 0; index < 6; ++index) EXPECT_TRUE(demonstration_wins(*factory, index, 0)) << index;
  }
}

TEST(AlfworldDemonstrations, LookAroundWhereTheyAreToldTo) {
  const auto knowing = small_alfworld(), searching = small_alfworld({{"demonstration.searches", "100"}}),
             careless = small_alfworld({{"demonstration.careless", "0.3"}});
  const auto steps_of = [](const EnvironmentFactory& factory, std::int64_t index) {
    const auto environment = factory.make_demonstrated(index, 1);
    environment->open();
    const auto agent = factory.script(*environment, 1, RandomStream(static_cast<std::uint64_t>(index)));
    Reply reply;
    int steps = 0;
    for (; !reply.done; ++steps) reply = environment->step(agent->respond(shown_text(reply)));
    EXPECT_TRUE(reply.success) << index;
    return steps;
  };
  int known = 0, searched = 0, strayed = 0;
  for (std::int64_t index = 0; index < 24; ++index) {
    known += steps_of(*knowing, index);
    searched += steps_of(*searching, index);
    strayed += steps_of(*careless, index);
  }
  EXPECT_GT(searched, known);
  EXPECT_GT(strayed, known);
}

// Thoughts that say how far the task is do not say what comes next: the actions are the same as with plans.
TEST(AlfworldDemonstrations, ThinkOfTheStateWhereTheyAreToldTo) {
  const Settings only = {{"task_types", "pick_heat_then_place_in_recep"}, {"demonstration.careless", "0.2"}};
  auto told = only;
  told["demonstration.thoughts"] = "state";
  const auto planning = small_alfworld(only), standing = small_alfworld(told);
  const auto one = planning->make(Split::Train, 0), other = standing->make(Split::Train, 0);
  const auto planner = planning->script(*one, 1, RandomStream(1)),
             stander = standing->script(*other, 1, RandomStream(1));
  const auto said = [](const std::string& response, const std::string& tag) {
    const auto begin = response.find("<" + tag + ">") + tag.size() + 2;
    return response.substr(begin, response.find("</" + tag + ">") - begin);
  };
  std::set<std::string> kinds;
  for (Reply reply; !reply.done;) {
    const std::string plan = planner->respond("").text, state = stander->respond("").text;
    EXPECT_EQ(said(plan, "action"), said(state, "action"));
    const std::string thought = said(state, "think");
    kinds.insert(thought.substr(0, thought.find(' ')));
    one->step(plan);
    reply = other->step(state);
  }
  for (const char* kind : {"find", "heat", "put"}) EXPECT_TRUE(kinds.contains(kind)) << kind;
}

TEST(AlfworldTasks, AreShownOnceAnEpoch) {
  const auto factory = small_alfworld();
  std::set<std::string> games, types;
  for (std::int64_t index = 0; index < 6; ++index) {
    const auto info = factory->make(Split::Train, index)->info();
    games.insert(info.at("game"));
    types.insert(info.at("task_type"));
    EXPECT_EQ(info.at("split"), "train");
  }
  EXPECT_EQ(games.size(), 6u);
  EXPECT_EQ(types.size(), 6u);
  EXPECT_EQ(factory->make(Split::Validation, 0)->info().at("split"), "valid_seen");
  EXPECT_EQ(factory->make(Split::Validation, 0)->info(), factory->make(Split::Validation, 2)->info())
      << "there are two";
}

TEST(AlfworldTasks, SayWhatIsMissing) {
  const auto message = [](const Settings& settings) { return alfworld_with(settings)->prepare(0).error().message; };
  const std::string source = source_path("tests/tasks/alfworld");
  EXPECT_TRUE(message({}).starts_with("env.task_source: names no folder; expected one with ALFWorld's games"));
  EXPECT_EQ(message({{"task_source", "/nowhere"}}),
            "env.task_source: /nowhere: holds neither train.jsonl nor train.jsonl.xz nor the folder train");
  EXPECT_TRUE(
      message({{"task_source", source}, {"eval_split", "valid_unseen"}, {"task_types", "pick_and_place_simple"}})
          .ends_with("split valid_unseen has no game of the types in env.task_types"));
  EXPECT_TRUE(message({{"task_source", source}, {"game", "a/b"}}).starts_with("env.game: 'a/b' is in no split of "));
}

TEST(AlfworldTasks, TeachATokenizerTheirWords) {
  const auto factory = small_alfworld();
  const auto words = factory->tokenizer_words();
  for (const char* word : {"sinkbasin", "saltshaker", "desklamp", "take", "from"})
    EXPECT_NE(std::find(words.begin(), words.end(), word), words.end()) << word;
  EXPECT_EQ(factory->tokenizer_added_tokens(),
            (std::vector<std::string>{"<think>", "</think>", "<action>", "</action>"}));
  EXPECT_GT(factory->tokenizer_texts().size(), 64u);
}

}  // namespace
}  // namespace carnot
