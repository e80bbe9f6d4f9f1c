#include "carnot/worlds/alfworld/simulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/random.h"
#include "carnot/core/env/play.h"
#include "carnot/worlds/alfworld/game.h"
#include "carnot/worlds/alfworld/solver.h"
#include "carnot/worlds/entries.h"
#include "testing/field_settings.h"
#include "testing/paths.h"
#include "testing/trials.h"

namespace carnot {
namespace {

const std::string kSmallGames = source_path("tests/tasks/alfworld");

std::shared_ptr<const AlfworldTask> small_game(const std::string& task_type, const std::string& split = "train") {
  auto games = read_alfworld_games(kSmallGames, split, {.task_types = {task_type}});
  EXPECT_TRUE(games.ok()) << (games.ok() ? "" : games.error().message);
  EXPECT_EQ(games->size(), 1u);
  return std::make_shared<const AlfworldTask>(std::move(games->front()));
}

std::vector<std::shared_ptr<const AlfworldTask>> all_small_games() {
  std::vector<std::shared_ptr<const AlfworldTask>> all;
  for (const char* split : {"train", "valid_seen", "valid_unseen"}) {
    auto games = read_alfworld_games(kSmallGames, split, {});
    EXPECT_TRUE(games.ok());
    for (AlfworldTask& game : *games) all.push_back(std::make_shared<const AlfworldTask>(std::move(game)));
  }
  return all;
}

std::string answer_to(Alfworld& game, const std::string& command) { return game.step(command).observation; }

TEST(AlfworldTexts, TellTheRoomAndTheTaskAtFirst) {
  const Alfworld game(small_game("look_at_obj_in_light"), 10);
  EXPECT_EQ(
      game.observation(),
      "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, you see "
      "a bed 1, a desk 1, a drawer 2, a drawer 1, a safe 1, a shelf 1, and a sidetable 1.\n\nYour task is to: look "
      "at book under the desklamp.");
  EXPECT_EQ(game.task().task(), "look at book under the desklamp.");
}

TEST(AlfworldTexts, AnswerEachCommandOfABedroom) {
  Alfworld game(small_game("look_at_obj_in_light"), 10);
  EXPECT_EQ(answer_to(game, "look"), "You are in the middle of a room. Looking quickly around you, you see nothing.");
  EXPECT_EQ(answer_to(game, "go to desk 1"), "You arrive at desk 1. On the desk 1, you see a book 2, and a pencil 2.");
  EXPECT_EQ(answer_to(game, "look"), "You are facing the desk 1, and drawer 2. Next to it, you see nothing.");
  EXPECT_EQ(answer_to(game, "inventory"), "You are not carrying anything.");
  EXPECT_EQ(answer_to(game, "examine drawer 2"), "The drawer 2 is closed.");
  EXPECT_EQ(answer_to(game, "open drawer 2"), "You open the drawer 2. The drawer 2 is open. In it, you see nothing.");
  EXPECT_EQ(answer_to(game, "examine desk 1"), "On the desk 1, you see a book 2, and a pencil 2.");
  EXPECT_EQ(answer_to(game, "take book 2 from desk 1"), "You pick up the book 2 from the desk 1.");
  EXPECT_EQ(answer_to(game, "inventory"), "You are carrying: a book 2.");
  EXPECT_EQ(answer_to(game, "examine book 2"), "There's nothing special about book 2.");
  EXPECT_EQ(answer_to(game, "take pencil 2 from desk 1"), "Nothing happens.") << "one hand";
  EXPECT_EQ(answer_to(game, "move book 2 to drawer 2"), "You move the book 2 to the drawer 2.");
  EXPECT_EQ(answer_to(game, "look"), "You are facing the desk 1, and drawer 2. Next to it, you see a book 2.");
  EXPECT_EQ(answer_to(game, "close drawer 2"), "You close the drawer 2.");
  EXPECT_EQ(answer_to(game, "take book 2 from drawer 2"), "Nothing happens.");
  EXPECT_EQ(answer_to(game, "go to sidetable 1"),
            "You arrive at sidetable 1. On the sidetable 1, you see a desklamp 1.");
  EXPECT_EQ(answer_to(game, "look"), "You are facing the sidetable 1. Next to it, you see nothing.");
  EXPECT_EQ(answer_to(game, "use desklamp 1"), "You turn on the desklamp 1.");
  EXPECT_EQ(answer_to(game, "use desklamp 1"), "You turn on the desklamp 1.") << "also when it goes off";
  EXPECT_EQ(answer_to(game, "  look\n"), "You are facing the sidetable 1. Next to it, you see nothing.");
  EXPECT_EQ(answer_to(game, "go to sidetable 1"), "Nothing happens.") << "it is there already";
  EXPECT_EQ(answer_to(game, "Look"), "Nothing happens.");
  EXPECT_EQ(answer_to(game, "examine desklamp 1"), "Nothing happens.") << "it is not held";
}

TEST(AlfworldTexts, ListTheCommandsForHelp) {
  Alfworld game(small_game("look_at_obj_in_light"), 10);
  const std::string help = answer_to(game, "help");
  EXPECT_EQ(std::count(help.begin(), help.end(), '\n'), 14) << "fourteen lines";
  EXPECT_TRUE(help.starts_with("Available commands:\n  look:                             look around your"));
  EXPECT_TRUE(help.ends_with("  slice (object) with (object):     slice an object using a sharp object\n"));
}

TEST(AlfworldTexts, AnswerEachCommandOfAKitchen) {
  Alfworld game(small_game("pick_heat_then_place_in_recep"), 10);
  EXPECT_EQ(answer_to(game, "go to diningtable 1"),
            "You arrive at diningtable 1. On the diningtable 1, you see a apple 2, and a spoon 1.");
  answer_to(game, "take apple 2 from diningtable 1");
  EXPECT_EQ(answer_to(game, "heat apple 2 with microwave 1"), "Nothing happens.") << "the microwave is elsewhere";
  EXPECT_EQ(answer_to(game, "go to microwave 1"), "You arrive at microwave 1. The microwave 1 is closed.");
  EXPECT_EQ(answer_to(game, "heat apple 2 with microwave 1"), "You heat the apple 2 using the microwave 1.");
  EXPECT_EQ(answer_to(game, "examine apple 2"), "This is a hot apple 2.");
  answer_to(game, "go to sinkbasin 1");
  EXPECT_EQ(answer_to(game, "clean apple 2 with sinkbasin 1"), "You clean the apple 2 using the sinkbasin 1.");
  EXPECT_EQ(answer_to(game, "examine apple 2"), "This is a hot and clean apple 2.");
  answer_to(game, "go to fridge 1");
  EXPECT_EQ(answer_to(game, "cool apple 2 with fridge 1"), "You cool the apple 2 using the fridge 1.");
  EXPECT_EQ(answer_to(game, "examine apple 2"), "This is a cool and clean apple 2.");
  answer_to(game, "go to diningtable 1");
  answer_to(game, "move apple 2 to diningtable 1");
  EXPECT_EQ(answer_to(game, "slice apple 2 with knife 1"), "Nothing happens.") << "no knife in hand";
  answer_to(game, "go to countertop 1");
  EXPECT_EQ(answer_to(game, "take knife 1 from countertop 1"), "You pick up the knife 1 from the countertop 1.");
  answer_to(game, "go to diningtable 1");
  EXPECT_EQ(answer_to(game, "slice apple 2 with knife 1"), "You sliced the apple 2 with the knife 1.");
  answer_to(game, "move knife 1 to diningtable 1");
  answer_to(game, "take apple 2 from diningtable 1");
  EXPECT_EQ(answer_to(game, "examine apple 2"), "This is a cool and clean sliced apple 2.");
}

TEST(AlfworldTexts, CallContainersNormal) {
  Alfworld game(small_game("pick_cool_then_place_in_recep"), 10);
  for (const char* command : {"go to cabinet 2", "open cabinet 2", "take plate 1 from cabinet 2"})
    EXPECT_TRUE(game.step(command).valid) << command;
  EXPECT_EQ(answer_to(game, "examine plate 1"), "This is a normal plate 1. In it, you see nothing.");
}

TEST(AlfworldRules, GiveTheRewardOnceTheTaskIsDone) {
  for (const auto& task : all_small_games()) {
    const auto plan = solve_alfworld(task->room, task->room.start);
    ASSERT_TRUE(plan.has_value()) << task->name();
    Alfworld game(task, 10);
    for (std::size_t i = 0; i < plan->size(); ++i) {
      const GameStep step = game.step(command_text(task->room, (*plan)[i].command));
      const bool last = i + 1 == plan->size();
      EXPECT_TRUE(step.valid && step.effective) << task->name();
      EXPECT_EQ(step.done, last) << task->name();
      EXPECT_EQ(step.success, last);
      EXPECT_EQ(step.reward.value, last ? 10 : 0);
    }
    EXPECT_THROW(game.step("look"), CheckError);
  }
}

TEST(AlfworldRules, WalkthroughsOfTheSmallGamesWin) {
  int walkthroughs = 0;
  for (const auto& task : all_small_games()) {
    if (task->walkthrough.empty()) continue;
    ++walkthroughs;
    Alfworld game(task, 10);
    GameStep step;
    for (const std::string& command : task->walkthrough) step = game.step(command);
    EXPECT_TRUE(step.success) << task->name();
  }
  EXPECT_EQ(walkthroughs, 2);
}

/// Every command that the room's names allow, admissible or not.
std::vector<RoomCommand> every_command(const Room& room) {
  std::vector<RoomCommand> all = {{RoomVerb::Help}, {RoomVerb::Inventory}, {RoomVerb::Look}};
  const auto objects = static_cast<std::int16_t>(room.objects.size());
  const auto receptacles = static_cast<std::int16_t>(room.receptacles.size());
  for (std::int16_t r = 0; r < receptacles; ++r) {
    for (const RoomVerb verb : {RoomVerb::Go, RoomVerb::Open, RoomVerb::Close, RoomVerb::Examine})
      all.push_back({verb, kNowhere, r});
    for (std::int16_t o = 0; o < objects; ++o)
      for (const RoomVerb verb : {RoomVerb::Take, RoomVerb::Move, RoomVerb::Clean, RoomVerb::Heat, RoomVerb::Cool})
        all.push_back({verb, o, r});
  }
  for (std::int16_t o = 0; o < objects; ++o) {
    all.push_back({RoomVerb::Use, o});
    all.push_back({RoomVerb::Examine, o});
    for (std::int16_t k = 0; k < objects; ++k) all.push_back({RoomVerb::Slice, o, kNowhere, k});
  }
  return all;
}

TEST(AlfworldRules, TheListHoldsExactlyTheCommandsThatCanBeCarriedOut) {
  RandomStream random(3);
  for (const auto& task : all_small_games()) {
    const Room& room = task->room;
    const std::vector<RoomCommand> all = every_command(room);
    RoomState state = room.start;
    for (int step = 0; step < testing::trials(100); ++step) {
      std::vector<RoomCommand> listed;
      list_admissible(room, state, listed);
      std::vector<std::string> texts, expected;
      for (const RoomCommand& command : listed) texts.push_back(command_text(room, command));
      for (const RoomCommand& command : all)
        if (admits(room, state, command)) expected.push_back(command_text(room, command));
      std::sort(expected.begin(), expected.end());
      ASSERT_EQ(texts, expected) << task->name() << ", step " << step;
      EXPECT_EQ(std::adjacent_find(texts.begin(), texts.end()), texts.end());
      apply_command(room, state, random.pick(listed));
    }
  }
}

TEST(AlfworldRules, EveryListedCommandIsAnsweredAndEveryOtherOneChangesNothing) {
  RandomStream random(5);
  for (const auto& task : all_small_games()) {
    const std::vector<RoomCommand> all = every_command(task->room);
    Alfworld game(task, 10);
    for (int step = 0; step < testing::trials(60); ++step) {
      const std::vector<std::string> listed = game.admissible();
      for (const std::string& command : listed) {
        const auto copy = game.clone();
        const GameStep played = copy->step(command);
        EXPECT_TRUE(played.valid) << command;
        EXPECT_NE(played.observation, kNothingHappens) << command;
        EXPECT_FALSE(played.observation.empty()) << command;
        EXPECT_EQ(played.effective, dynamic_cast<const Alfworld&>(*copy).state() != game.state()) << command;
      }
      const std::string other = command_text(task->room, random.pick(all));
      if (!std::binary_search(listed.begin(), listed.end(), other)) {
        const RoomState before = game.state();
        const GameStep played = game.step(other);
        EXPECT_EQ(played.observation, kNothingHappens) << other;
        EXPECT_FALSE(played.valid || played.effective || played.done);
        EXPECT_EQ(game.state(), before);
      }
      if (game.step(random.pick(listed)).done) game = Alfworld(task, 10);
    }
  }
}

TEST(AlfworldRules, ACommandReadsBackFromItsText) {
  for (const auto& task : all_small_games())
    for (const RoomCommand& command : every_command(task->room))
      EXPECT_EQ(parse_command(task->room, command_text(task->room, command)), command)
          << command_text(task->room, command);
}

TEST(AlfworldRules, TextsThatAreNoCommandAreNone) {
  const auto task = small_game("pick_heat_then_place_in_recep");
  for (const char* text :
       {"", " ", "go", "go to", "go to ", "go to nowhere 1", "go to apple 1", "open apple 1", "use fridge 1",
        "take apple 1", "take apple 1 from", "take apple 1 from apple 2", "take fridge 1 from fridge 1",
        "slice apple 1 with fridge 1", "look around", "help me", "inventory ", "examine", "fly"})
    EXPECT_EQ(parse_command(task->room, text), std::nullopt) << text;
}

TEST(AlfworldCommand, PrintsTheListOfAdmissibleActionsWithEveryAnswer) {
  const auto factory = make_alfworld();
  testing::FieldSettings settings({{"task_source", kSmallGames},
                                   {"game", "look_at_obj_in_light-CD-None-DeskLamp-9/trial_T20200101_000009_000009"}});
  factory->fields(settings);
  ASSERT_TRUE(factory->prepare(0).ok());
  std::istringstream in("go to drawer 1\nfly\n");
  std::ostringstream out;
  ASSERT_TRUE(play(*factory, {.name = "alfworld", .json = true}, in, out).ok());
  std::vector<nlohmann::json> lines;
  const std::string text = out.str();
  for (const std::string_view line : split_lines(text)) lines.push_back(parse_json(line, "line").value());
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["task"], "examine the cd with the desklamp.");
  EXPECT_EQ(lines[0]["admissible"].size(), 10u) << "seven receptacles, help, inventory, look";
  EXPECT_EQ(lines[0]["board"]["split"], "valid_unseen");
  EXPECT_EQ(lines[1]["action"], "go to drawer 1");
  EXPECT_EQ(lines[1]["observation"], "You arrive at drawer 1. The drawer 1 is closed.");
  EXPECT_EQ(lines[1]["reward"], 0.0);
  EXPECT_EQ(lines[1]["done"], false);
  EXPECT_EQ(lines[1]["success"], false);
  const std::vector<std::string> admissible = lines[1]["admissible"];
  EXPECT_TRUE(std::is_sorted(admissible.begin(), admissible.end()));
  EXPECT_TRUE(std::binary_search(admissible.begin(), admissible.end(), "open drawer 1"));
  EXPECT_TRUE(std::binary_search(admissible.begin(), admissible.end(), "help"));
  EXPECT_EQ(lines[2]["observation"], "Nothing happens.");
  EXPECT_EQ(lines[2]["admissible"], lines[1]["admissible"]);
}

std::string complaint_about_room(const std::string& problem) {
  const auto room = parse_room(problem, "p");
  return room.ok() ? "" : room.error().message;
}

TEST(AlfworldProblem, SaysWhereItIsWrong) {
  EXPECT_EQ(complaint_about_room(""), "p:1: expected '(', found the end");
  EXPECT_EQ(complaint_about_room("(define\n(:objects a - object"),
            "p:2: expected names, '-' and their type, found the end");
  EXPECT_EQ(complaint_about_room("(define (:objects a - object) (:init (pickupable a"),
            "p:1: expected arguments of 'pickupable', found the end");
  EXPECT_EQ(complaint_about_room("(define (:objects a - object) (:init (pickupable a)))"),
            "p: expected a problem with :objects, :init and :goal");
  EXPECT_EQ(complaint_about_room(
                "(define (:objects a - object l - location me - agent) (:init (atlocation me l) (pickupable b))"
                "(:goal (and)))"),
            "p: pickupable: expected the name of an existing object, found 'b'");
  EXPECT_EQ(complaint_about_room(
                "(define (:objects a - object l - location me - agent) (:init (atlocation me l)) (:goal (and)))"),
            "p: :goal: expected one of ALFWorld's six forms, found another one");
}

TEST(AlfworldProblem, KeepsObjectsWithoutReceptacleOutOfReach) {
  const auto task = small_game("pick_clean_then_place_in_recep");
  const NamedEntity* window = task->room.find("window 1");
  ASSERT_NE(window, nullptr);
  for (const EntitySet& contents : task->room.start.inside) EXPECT_FALSE(contents.has(window->object));
}

}  // namespace
}  // namespace carnot
