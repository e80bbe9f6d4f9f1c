// Every board, both renderings and every step that the published Python made (tests/recorded/boards).
#include <gtest/gtest.h>

#include <sstream>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/env/environment.h"
#include "carnot/core/env/play.h"
#include "carnot/worlds/ragen/grid_text.h"
#include "carnot/worlds/sokoban/room.h"
#include "carnot/worlds/sudoku/game.h"
#include "testing/field_settings.h"
#include "testing/paths.h"

namespace carnot {
namespace {

struct BoardFile {
  std::string env;
  std::string file;
};

std::vector<OrderedJson> records(const std::string& file) {
  const auto text = read_maybe_compressed(recorded_path("boards/") + file);
  EXPECT_TRUE(text.ok()) << text.error().message;
  std::vector<OrderedJson> all;
  for (const auto line : split_lines(*text))
    if (!line.empty()) all.push_back(OrderedJson::parse(line));
  return all;
}

std::unique_ptr<EnvironmentFactory> factory_for(const std::string& env, const OrderedJson& config) {
  auto factory = make_environment_factory(env).value();
  std::map<std::string, std::string> values;
  for (const auto& [key, value] : config.items())
    values[key] = value.is_string() ? value.get<std::string>() : value.dump();
  testing::FieldSettings settings(values);
  factory->fields(settings);
  EXPECT_TRUE(settings.unused().empty()) << env << " has no option " << settings.unused()[0];
  EXPECT_TRUE(factory->prepare(0).ok());
  return factory;
}

// A step as Python's json.dumps writes it, without the renderings that only the golden files have.
std::string golden_line(const OrderedJson& step) {
  std::string line;
  for (const char* key : {"action", "observation", "reward", "done", "success", "effective", "valid"}) {
    const OrderedJson& value = step.at(key);
    const std::string text = value.is_string() ? json_text(value.get<std::string>()) : value.dump();
    line += (line.empty() ? "{\"" : ", \"") + std::string(key) + "\": " + text;
  }
  return line + "}";
}

class Boards : public ::testing::TestWithParam<BoardFile> {};

TEST_P(Boards, ReplayTheirTracesAsTheCommandPrintsThem) {
  for (const OrderedJson& record : records(GetParam().file)) {
    const auto seed = record.at("seed").get<std::uint64_t>();
    const auto factory = factory_for(GetParam().env, record.at("config"));
    std::string actions, expected;
    for (const OrderedJson& step : record.at("trace")) {
      actions += step.at("action").get<std::string>() + "\n";
      expected += golden_line(step) + "\n";
    }
    std::istringstream in(actions);
    std::ostringstream out;
    const Status played = play(*factory, {.name = GetParam().env, .seed = seed, .json = true}, in, out);
    ASSERT_TRUE(played.ok()) << played.error().message;

    const std::string text = out.str();
    const auto head_end = text.find('\n');
    const OrderedJson head = OrderedJson::parse(text.substr(0, head_end));
    EXPECT_EQ(head.at("env"), record.at("env"));
    EXPECT_EQ(head.at("seed"), record.at("seed"));
    EXPECT_EQ(head.at("board"), record.at("board")) << "seed " << seed;
    EXPECT_EQ(head.at("observation"), record.at("observation")) << "seed " << seed;
    for (const auto& [key, value] : record.at("config").items()) EXPECT_EQ(head.at("config").at(key), value) << key;
    EXPECT_EQ(text.substr(head_end + 1), expected) << "seed " << seed;
  }
}

TEST_P(Boards, ShowTheOtherRenderingToo) {
  for (const OrderedJson& record : records(GetParam().file)) {
    for (const std::string format : {"grid", "grid_coord"}) {
      const std::string key = "observation_" + format;
      if (!record.contains(key)) continue;
      OrderedJson config = record.at("config");
      config["observation_format"] = format;
      const auto game = factory_for(GetParam().env, config)->make_game(record.at("seed")).value();
      EXPECT_EQ(game->observation(), record.at(key).get<std::string>());
      for (const OrderedJson& step : record.at("trace"))
        EXPECT_EQ(game->step(step.at("action").get<std::string>()).observation, step.at(key).get<std::string>());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, Boards,
                         ::testing::Values(BoardFile{"sokoban", "sokoban_simple.jsonl.xz"},
                                           BoardFile{"sokoban", "sokoban_larger.jsonl.xz"},
                                           BoardFile{"frozen_lake", "frozen_lake.jsonl.xz"},
                                           BoardFile{"sudoku", "sudoku.jsonl.xz"}),
                         [](const auto& info) { return info.param.file.substr(0, info.param.file.find('.')); });

TEST(Boards, SudokuKeepsTheSolutionThatPuzzlesWereMadeFrom) {
  for (const OrderedJson& record : records("sudoku.jsonl.xz"))
    EXPECT_EQ(digits_text(Sudoku({}, record.at("seed")).puzzle().solution), record.at("solution").get<std::string>());
}

TEST(Boards, LargerSokobanFailsForTheSeedsThatFailUpstream) {
  const SokobanRoomOptions larger{.rows = 8, .columns = 8, .boxes = 2, .search_depth = 10};
  const auto failing = records("sokoban_larger_failing_seeds.json").at(0);
  ASSERT_FALSE(failing.empty());
  for (const auto& seed : failing) {
    EXPECT_FALSE(generate_sokoban_room(larger, seed)) << seed;
    EXPECT_TRUE(make_sokoban_room(larger, seed).ok()) << seed;
  }
}

}  // namespace
}  // namespace carnot
