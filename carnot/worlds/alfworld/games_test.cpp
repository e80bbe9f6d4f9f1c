// Whole games, the invented ones (tests/tasks/alfworld) and the published ones where they are at hand: every
// walkthrough wins, the solver wins every one, and all answers are those of ALFWorld itself.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/random.h"
#include "carnot/worlds/alfworld/game.h"
#include "carnot/worlds/alfworld/solver.h"
#include "reference/alfworld_grounder.h"
#include "testing/invented_and_published.h"
#include "testing/paths.h"
#include "testing/trials.h"

namespace carnot {
namespace {

std::string folder_of_games(bool published) {
  return published ? published_path("alfworld") : source_path("tests/tasks/alfworld");
}

struct GameSplit {
  bool published = false;
  std::string split{};

  auto operator<=>(const GameSplit&) const = default;
};

/// The rows of a split, read once for all tests.
const std::vector<std::string_view>& rows_of(const GameSplit& of) {
  static std::map<GameSplit, std::string> texts;
  static std::map<GameSplit, std::vector<std::string_view>> rows;
  if (!rows.contains(of)) {
    const std::string path = folder_of_games(of.published) + "/" + of.split + (of.published ? ".jsonl.xz" : ".jsonl");
    texts[of] = read_maybe_compressed(path).value();
    rows[of] = split_lines(texts[of]);
  }
  return rows[of];
}

bool all_are_wanted() { return std::getenv("CARNOT_ALFWORLD_ALL") != nullptr; }

std::shared_ptr<const AlfworldTask> game_of(std::string_view row) {
  auto game = parse_alfworld_row(row, "row");
  EXPECT_TRUE(game.ok()) << (game.ok() ? "" : game.error().message);
  return std::make_shared<const AlfworldTask>(std::move(*game));
}

using Games = std::vector<std::shared_ptr<const AlfworldTask>>;

/// The games of a split, parsed once. Of the published training split those with a walkthrough and every eighth other
/// one; all with CARNOT_ALFWORLD_ALL=1 in the environment, which takes half a minute.
const Games& games_of(const GameSplit& of) {
  static std::map<GameSplit, Games> splits;
  if (splits.contains(of)) return splits[of];
  const auto& rows = rows_of(of);
  const std::size_t stride = of.published && of.split == "train" && !all_are_wanted() ? 8 : 1;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (i % stride == 0 || rows[i].find("\"walkthrough\": []") == std::string_view::npos)
      splits[of].push_back(game_of(rows[i]));
  return splits[of];
}

class AlfworldSplits : public ::testing::TestWithParam<GameSplit> {
 protected:
  void SetUp() override {
    if (GetParam().published) {
      CARNOT_NEEDS_PUBLISHED_DATA();
      if (testing::kSanitized && GetParam().split == "train") CARNOT_SKIP(Uninstrumented, "takes minutes otherwise");
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Games, AlfworldSplits,
                         ::testing::Values(GameSplit{false, "train"}, GameSplit{false, "valid_seen"},
                                           GameSplit{false, "valid_unseen"}, GameSplit{true, "train"},
                                           GameSplit{true, "valid_seen"}, GameSplit{true, "valid_unseen"}),
                         [](const auto& info) {
                           return (info.param.published ? "Published_" : "Invented_") + info.param.split;
                         });

TEST_P(AlfworldSplits, HaveTheirNumberOfGamesOfEachType) {
  const std::vector<std::string> types = {"look_at_obj_in_light",           "pick_and_place_simple",
                                          "pick_clean_then_place_in_recep", "pick_cool_then_place_in_recep",
                                          "pick_heat_then_place_in_recep",  "pick_two_obj_and_place"};
  const std::map<GameSplit, std::vector<int>> expected = {
      {{false, "train"}, {1, 1, 1, 1, 1, 1}},           {{false, "valid_seen"}, {0, 0, 0, 0, 1, 1}},
      {{false, "valid_unseen"}, {1, 0, 0, 0, 0, 0}},    {{true, "train"}, {308, 790, 650, 533, 459, 813}},
      {{true, "valid_seen"}, {13, 35, 27, 25, 16, 24}}, {{true, "valid_unseen"}, {18, 24, 31, 21, 23, 17}}};
  std::vector<int> counts(types.size());
  for (const std::string_view row : rows_of(GetParam()))
    for (std::size_t i = 0; i < types.size(); ++i)
      counts[i] += row.find("\"task_type\": \"" + types[i] + "\"") != std::string_view::npos ? 1 : 0;
  EXPECT_EQ(counts, expected.at(GetParam()));
}

TEST_P(AlfworldSplits, HaveWalkthroughsThatAreAdmissibleAndWin) {
  std::map<GameSplit, int> walkthroughs = {{{false, "train"}, 2}, {{true, "train"}, 300}, {{true, "valid_seen"}, 60}};
  int found = 0;
  for (const auto& task : games_of(GetParam())) {
    if (task->walkthrough.empty()) continue;
    ++found;
    Alfworld game(task, 10);
    GameStep step;
    for (const std::string& command : task->walkthrough) {
      ASSERT_FALSE(step.done) << task->name() << " is won before " << command;
      const std::vector<std::string> admissible = game.admissible();
      ASSERT_TRUE(std::binary_search(admissible.begin(), admissible.end(), command)) << task->name() << ": " << command;
      step = game.step(command);
    }
    EXPECT_TRUE(step.success) << task->name();
  }
  EXPECT_EQ(found, walkthroughs[GetParam()]);
}

TEST_P(AlfworldSplits, AreWonByTheSolverInNoMoreCommandsThanByTheWalkthrough) {
  for (const auto& task : games_of(GetParam())) {
    const auto plan = solve_alfworld(task->room, task->room.start);
    ASSERT_TRUE(plan.has_value() && !plan->empty()) << task->name();
    Alfworld game(task, 10);
    GameStep step;
    for (const PlannedCommand& planned : *plan) {
      ASSERT_FALSE(step.done) << task->name();
      step = game.step(command_text(task->room, planned.command));
      ASSERT_TRUE(step.valid) << task->name();
    }
    EXPECT_TRUE(step.success) << task->name();
    if (task->walkthrough.empty()) continue;
    EXPECT_LE(plan->size(), task->walkthrough.size()) << task->name();
  }
}

/// The row of a game, named TASK_ID/TRIAL_ID, or nothing.
std::string_view row_of(const GameSplit& of, const std::string& game) {
  const std::string trial = "\"trial_id\": \"" + game.substr(game.find('/') + 1) + "\"";
  for (const std::string_view row : rows_of(of))
    if (row.find(trial) != std::string_view::npos) return row;
  return {};
}

// Published transcripts of the Python original.
TEST(AlfworldExcerpts, AreReproduced) {
  CARNOT_NEEDS_PUBLISHED_DATA();
  if (testing::kSanitized) CARNOT_SKIP(Uninstrumented, "reads the training games, which takes minutes otherwise");
  Alfworld first(game_of(row_of({true, "train"}, "/trial_T20190909_132423_909909")), 10);
  EXPECT_EQ(
      first.step("go to desk 1").observation,
      "You arrive at desk 1. On the desk 1, you see a alarmclock 2, a alarmclock 1, a book 2, a bowl 1, a keychain 2, "
      "and a mug 2.");
  EXPECT_EQ(first.admissible(), (std::vector<std::string>{"examine desk 1",
                                                          "go to bed 1",
                                                          "go to drawer 1",
                                                          "go to drawer 2",
                                                          "go to drawer 3",
                                                          "go to drawer 4",
                                                          "go to drawer 5",
                                                          "go to dresser 1",
                                                          "go to garbagecan 1",
                                                          "go to laundryhamper 1",
                                                          "go to shelf 1",
                                                          "help",
                                                          "inventory",
                                                          "look",
                                                          "take alarmclock 1 from desk 1",
                                                          "take alarmclock 2 from desk 1",
                                                          "take book 2 from desk 1",
                                                          "take bowl 1 from desk 1",
                                                          "take keychain 2 from desk 1",
                                                          "take mug 2 from desk 1"}));
  Alfworld second(game_of(row_of({true, "train"}, "/trial_T20190908_024638_080857")), 10);
  EXPECT_EQ(second.step("go to desk 1").observation,
            "You arrive at desk 1. On the desk 1, you see a alarmclock 3, a alarmclock 2, a cd 1, and a pen 1.");
  const std::vector<std::string> admissible = second.admissible();
  for (const char* command : {"take alarmclock 2 from desk 1", "take alarmclock 3 from desk 1", "take cd 1 from desk 1",
                              "take pen 1 from desk 1", "examine desk 1", "help"})
    EXPECT_TRUE(std::binary_search(admissible.begin(), admissible.end(), command)) << command;
}

/// The admissible list after a recorded step.
void change_list(std::vector<std::string>& list, const Json& step) {
  for (const Json& gone : step["less"]) std::erase(list, gone.get<std::string>());
  for (const Json& added : step["more"]) list.push_back(added);
  std::ranges::sort(list);
}

class AlfworldTranscripts : public testing::InventedAndPublished {};
INSTANTIATE_TEST_SUITE_P(Data, AlfworldTranscripts, ::testing::Bool(), testing::data_name);

// What ALFWorld itself answered (tools/golden/alfworld_plays.py): every text, every list, every end.
TEST_P(AlfworldTranscripts, EqualThoseOfThePythonOriginal) {
  const std::string plays = published() ? "plays.jsonl.xz" : "invented_plays.jsonl.xz";
  const auto text = read_maybe_compressed(source_path("tests/golden/alfworld/" + plays));
  ASSERT_TRUE(text.ok()) << text.error().message;
  std::map<std::string, int> verbs;
  for (const std::string_view line : split_lines(*text)) {
    const Json play = parse_json<Json>(line, "play").value();
    const std::string name = play["game"];
    SCOPED_TRACE(name);
    Alfworld game(game_of(row_of({published(), play["split"]}, name)), 10);
    std::vector<std::string> admissible = play["admissible"];
    EXPECT_EQ(game.observation(), play["observation"].get<std::string>());
    EXPECT_EQ(game.admissible(), admissible);
    for (const Json& recorded : play["steps"]) {
      const std::string command = recorded["command"];
      SCOPED_TRACE(command);
      const GameStep step = game.step(command);
      change_list(admissible, recorded);
      EXPECT_EQ(step.observation, recorded["observation"].get<std::string>());
      EXPECT_EQ(step.success, recorded["won"].get<bool>());
      EXPECT_EQ(game.admissible(), admissible);
      if (step.valid) ++verbs[command.substr(0, command.find(' '))];
    }
  }
  EXPECT_EQ(verbs.size(), 14) << "a verb was never carried out";
}

/// A command of a verb that is drawn first: otherwise nearly all of them would go somewhere.
RoomCommand drawn_command(const std::vector<RoomCommand>& commands, RandomStream& random) {
  std::vector<RoomVerb> verbs;
  for (const RoomCommand& command : commands)
    if (verbs.empty() || verbs.back() != command.verb) verbs.push_back(command.verb);
  const RoomVerb verb = random.pick(verbs);
  std::vector<RoomCommand> of_verb;
  for (const RoomCommand& command : commands)
    if (command.verb == verb) of_verb.push_back(command);
  return random.pick(of_verb);
}

/// Plays the simulator and the grounder of the original domain side by side; the first difference, or nothing.
std::string difference(const AlfworldTask& task, const std::string& domain, const std::string& problem, int steps,
                       RandomStream random) {
  reference::AlfworldGrounder slow(domain, problem);
  RoomState state = task.room.start;
  const auto plan = solve_alfworld(task.room, state);
  for (int step = 0; step < steps; ++step) {
    if (admissible_texts(task.room, state) != slow.admissible())
      return task.name() + ": other admissible commands at step " + std::to_string(step);
    if (is_goal(task.room, state) != slow.won()) return task.name() + ": won or not, at step " + std::to_string(step);
    std::vector<RoomCommand> commands;
    list_admissible(task.room, state, commands);
    // Every other game goes the solver's way first, so that goals are met.
    const bool planned = plan && random.seed() % 2 == 0 && step < static_cast<int>(plan->size());
    const RoomCommand command =
        planned ? (*plan)[static_cast<std::size_t>(step)].command : drawn_command(commands, random);
    apply_command(task.room, state, command);
    slow.apply(command_text(task.room, command));
  }
  return "";
}

TEST_P(AlfworldTranscripts, CommandsAndGoalsAreThoseOfThePddlDomain) {
  const auto domain = read_file(folder_of_games(published()) + "/game_domain.pddl");
  ASSERT_TRUE(domain.ok());
  const auto& lines = rows_of({published(), published() ? "valid_unseen" : "train"});
  const std::size_t stride = all_are_wanted() || !published() ? 1 : testing::kSanitized ? 40 : 12;
  for (std::size_t i = 0; i < lines.size(); i += stride) {
    const auto row = parse_json(lines[i], "row").value();
    const auto task = parse_alfworld_row(lines[i], "row");
    ASSERT_TRUE(task.ok());
    EXPECT_EQ(difference(*task, *domain, row["pddl_problem"], 25, RandomStream(i / stride)), "");
  }
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, from.size(), to);
}

/// The rows of a split as alfworld-download lays games out.
void write_as_published(const GameSplit& of, const std::filesystem::path& folder, std::size_t stride) {
  const std::string domain = read_file(folder_of_games(of.published) + "/game_domain.pddl").value();
  const std::string grammar = read_file(folder_of_games(of.published) + "/game_grammar.twl2").value();
  const auto& lines = rows_of(of);
  for (std::size_t i = 0; i < lines.size(); i += stride) {
    const auto row = parse_json(lines[i], "row").value();
    const std::string sentence = row["task"].front();
    const auto trial = folder / row["split"].get<std::string>() / row["task_id"].get<std::string>() /
                       row["trial_id"].get<std::string>();
    std::filesystem::create_directories(trial);
    std::ofstream(trial / "game.tw-pddl")
        << nlohmann::ordered_json{{"pddl_domain", domain},
                                  {"grammar", replaced(grammar, "Your task is to: UNKNOWN GOAL.", sentence)},
                                  {"pddl_problem", row["pddl_problem"]},
                                  {"solvable", true},
                                  {"walkthrough", row["walkthrough"]}};
  }
}

TEST_P(AlfworldTranscripts, FoldersAsPublishedHoldTheSameGames) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("carnot_alfworld_" + std::to_string(::getpid()));
  const GameSplit of{published(), "valid_seen"};
  const std::size_t stride = !published() ? 1 : testing::kSanitized ? 20 : 3;
  write_as_published(of, folder, stride);
  // What ALFWorld itself leaves out.
  const auto left_out = folder / "valid_seen/pick_and_place_with_movable_recep-Mug-Box-Desk-301/trial_T1";
  std::filesystem::create_directories(left_out);
  std::ofstream(left_out / "game.tw-pddl") << "no game";
  const auto games = read_alfworld_games(folder, "valid_seen", {});
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(games.ok()) << games.error().message;

  const Games& rows = games_of(of);
  ASSERT_EQ(games->size(), (rows.size() + stride - 1) / stride);
  for (std::size_t i = 0; i < games->size(); ++i) {
    const AlfworldTask& game = (*games)[i];
    const AlfworldTask& row = *rows[i * stride];
    EXPECT_EQ(game.name(), row.name());
    EXPECT_EQ(game.split, row.split);
    EXPECT_EQ(game.task_type, row.task_type);
    EXPECT_EQ(game.sentence, row.sentence);
    EXPECT_EQ(game.walkthrough, row.walkthrough);
    EXPECT_EQ(game.room.start, row.room.start);
    EXPECT_EQ(opening_text(game.room), opening_text(row.room));
    EXPECT_EQ(admissible_texts(game.room, game.room.start), admissible_texts(row.room, row.room.start));
  }
}

TEST(AlfworldGameFile, SaysWhatItLacks) {
  const auto complaint = [](const nlohmann::json& game) {
    const auto parsed = parse_alfworld_game(game.dump(), "g");
    return parsed.ok() ? "" : parsed.error().message;
  };
  EXPECT_EQ(complaint({{"grammar", "x"}}), "g: grammar: expected rules between two \"\"\"");
  EXPECT_EQ(complaint({{"grammar", "grammar :: \"\"\"{\"task\": []}\"\"\";"}}),
            "g: grammar: expected the rule task with one sentence");
  const std::string rules = "grammar :: \"\"\"{\"task\": [{\"rhs\": \"Your task is to: rest.\"}]}\"\"\";";
  EXPECT_EQ(complaint({{"grammar", rules}, {"pddl_problem", "("}}),
            "g: grammar: expected the commands of json_2.1.1 (\"move {o} to {r}\"), found those of another release");
  EXPECT_EQ(complaint({{"grammar", rules + "\"move {o} to {r}\""}}), "g: pddl_problem: this key is missing");
  EXPECT_EQ(complaint({{"grammar", rules + "\"move {o} to {r}\""}, {"pddl_problem", "("}}),
            "g: pddl_problem:1: expected 'define', found the end");
}

}  // namespace
}  // namespace carnot
