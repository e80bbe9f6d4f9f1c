// Demonstrations: how often the scripted agents solve what can be solved.
#include <gtest/gtest.h>

#include <regex>
#include <utility>

#include "carnot/core/base/strings.h"
#include "carnot/core/env/environment.h"
#include "carnot/worlds/frozen_lake/game.h"
#include "carnot/worlds/sokoban/solver.h"
#include "testing/field_settings.h"

namespace carnot {
namespace {

constexpr std::int64_t kTasks = 200;

struct Score {
  int solved = 0;
  double rewards = 0;
  int valid_turns = 0;
  int turns = 0;
};

Score play_tasks(EnvironmentFactory& factory, std::int64_t tasks = kTasks) {
  EXPECT_TRUE(factory.prepare(0).ok());
  Score score;
  for (std::int64_t index = 0; index < tasks; ++index) {
    const auto environment = factory.make(Split::Train, index);
    environment->open();
    const auto agent = factory.script(*environment, 1, RandomStream(static_cast<std::uint64_t>(index)));
    for (Reply reply; !reply.done; ++score.turns) {
      reply = environment->step(agent->respond(reply.text));
      score.rewards += reply.reward;
      score.valid_turns += reply.valid_action ? 1 : 0;
      score.solved += reply.done && reply.success ? 1 : 0;
    }
  }
  EXPECT_EQ(score.valid_turns, score.turns) << "demonstrations keep the form";
  return score;
}

std::unique_ptr<EnvironmentFactory> factory_with(const std::string& name,
                                                 const std::map<std::string, std::string>& options) {
  auto factory = make_environment_factory(name).value();
  testing::FieldSettings settings(options);
  factory->fields(settings);
  EXPECT_TRUE(settings.unused().empty());
  return factory;
}

TEST(Scripts, SolveEverySokobanThatTenMovesCanSolve) {
  const auto factory = factory_with("sokoban", {});
  const Score score = play_tasks(*factory);
  int solvable = 0;
  for (std::int64_t index = 0; index < kTasks; ++index) {
    const auto room = make_sokoban_room({}, 10000 + static_cast<std::uint64_t>(index)).value();
    solvable += solve_sokoban(room, 10).empty() ? 0 : 1;
  }
  EXPECT_EQ(score.solved, solvable);
  EXPECT_GT(solvable, kTasks * 3 / 4);
}

TEST(Scripts, SolveSokobanRoomsOfTwoBoxesGivenMoves) {
  const auto factory = factory_with("sokoban", {{"dim_x", "8"},
                                                {"dim_y", "8"},
                                                {"num_boxes", "2"},
                                                {"search_depth", "10"},
                                                {"max_actions", "40"},
                                                {"max_turns", "20"}});
  EXPECT_GE(play_tasks(*factory, 40).solved, 38);
}

TEST(Scripts, SolveEveryFrozenLakeThatIsNotSlippery) {
  const auto factory = factory_with("frozen_lake", {{"is_slippery", "false"}});
  EXPECT_EQ(play_tasks(*factory).solved, kTasks);
}

TEST(Scripts, MostlyCrossSlipperyLakes) {
  const auto factory = factory_with("frozen_lake", {});
  EXPECT_GE(play_tasks(*factory).solved, kTasks * 8 / 10);
}

TEST(Scripts, SolveEverySudoku) { EXPECT_EQ(play_tasks(*factory_with("sudoku", {})).solved, kTasks); }

/// The page's lines "  - (1,3): [2, 4]" up to the second with a single number, and the placements "1,3,4" of those.
struct ReadPage {
  std::string lines = "\n";
  std::vector<std::string> placements;
};

ReadPage read_to_second_certain_cell(const std::string& page) {
  static const std::regex line(R"(  - \((\d),(\d)\): \[([^\]]+)\]\n)");
  ReadPage read;
  std::string passed;
  for (std::sregex_iterator match(page.begin(), page.end(), line), end; match != end; ++match) {
    passed += match->str();
    if ((*match)[3].length() > 1 || read.placements.size() == 2) continue;
    read.lines += std::exchange(passed, "");
    read.placements.push_back((*match)[1].str() + "," + (*match)[2].str() + "," + (*match)[3].str());
  }
  return read;
}

TEST(Scripts, OfSudokuReadThePageUpToTheCellsItLeavesNoChoiceForAndFillThem) {
  const auto factory = factory_with("sudoku", {});
  ASSERT_TRUE(factory->prepare(0).ok());
  int compared = 0;
  for (std::int64_t index = 0; index < kTasks; ++index) {
    const auto environment = factory->make(Split::Train, index);
    std::string page = environment->open().user;
    const auto agent = factory->script(*environment, 1, RandomStream(static_cast<std::uint64_t>(index)));
    for (Reply reply; !reply.done; page = reply.text) {
      const PolicyResponse given = agent->respond(page);
      const ReadPage read = read_to_second_certain_cell(page);
      if (!read.placements.empty()) {
        EXPECT_EQ(given.text, "<think>" + read.lines + " Plan " + join(read.placements) + ".</think><answer>" +
                                  join(read.placements, " || ") + "</answer>");
        ++compared;
      }
      reply = environment->step(given);
    }
  }
  EXPECT_GT(compared, 2 * kTasks);
}

TEST(Scripts, OfSokobanRepeatThePagesCoordinatesAndSayWhetherThereIsAPlan) {
  static const std::regex lines(R"(zero-indexed\)\.\n([^]*)Grid Map)");
  const auto factory = factory_with("sokoban", {{"observation_format", "grid_coord"}, {"careless_turns", "0.5"}});
  ASSERT_TRUE(factory->prepare(0).ok());
  int planned = 0, turns = 0;
  for (std::int64_t index = 0; index < kTasks; ++index) {
    const auto environment = factory->make(Split::Train, index);
    std::string page = environment->open().user;
    const auto agent = factory->script(*environment, 1, RandomStream(static_cast<std::uint64_t>(index)));
    for (Reply reply; !reply.done; page = reply.text, ++turns) {
      const PolicyResponse given = agent->respond(page);
      std::smatch read;
      ASSERT_TRUE(std::regex_search(page, read, lines)) << page;
      const std::string noted = "<think>\n" + read[1].str();
      const bool plan = given.text.starts_with(noted + " Plan.</think><answer>");
      EXPECT_TRUE(plan || given.text.starts_with(noted + " Not sure.</think><answer>")) << given.text;
      planned += plan ? 1 : 0;
      reply = environment->step(given);
    }
  }
  EXPECT_GT(planned, turns / 4);
  EXPECT_LT(planned, turns * 3 / 4);
}

TEST(Scripts, FailOftenerWhenCareless) {
  for (const char* name : {"sokoban", "frozen_lake", "sudoku"}) {
    const int careful = play_tasks(*factory_with(name, {}), 50).solved;
    const int careless = play_tasks(*factory_with(name, {{"careless_turns", "0.8"}}), 50).solved;
    EXPECT_LT(careless, careful) << name;
  }
}

TEST(FrozenLakeSolver, FindsShortestWaysOnFirmIce) {
  const FrozenLakeOptions firm{.is_slippery = false};
  const FrozenLakeMap map{.size = 3,
                          .cells =
                              "SHG"
                              "FHF"
                              "FFF"};
  int cell = 0, moves = 0;
  while (map.cells[cell] != 'G' && moves < 20) {
    const int action = solve_frozen_lake(firm, map, 10)[cell];
    cell = frozen_lake_moves(firm, 3, cell, action).ends[1];
    ++moves;
  }
  EXPECT_EQ(moves, 6);
}

TEST(SokobanSolver, FindsTheShortestSolutionOfASmallRoom) {
  const SokobanRoom room = make_sokoban_room({}, 123).value();
  EXPECT_EQ(solve_sokoban(room, 10), (std::vector<SokobanMove>{SokobanMove::Down, SokobanMove::Left, SokobanMove::Up}));
  EXPECT_TRUE(solve_sokoban(room, 2).empty());
}

}  // namespace
}  // namespace carnot
