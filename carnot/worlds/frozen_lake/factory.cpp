#include "carnot/worlds/ragen/factory.h"

#include "carnot/worlds/frozen_lake/game.h"

namespace carnot {
namespace {

constexpr std::string_view kFrozenLakeInstruction =
    "You are solving the FrozenLake puzzle. The observation includes both a symbol grid and zero-indexed coordinates "
    "for the start, goal, player, and any holes.\n"
    "Beware that the ice is slippery, so the agent might slide and end up in an unintended tile.\n"
    "Respond with a sequence of actions such as <answer>Left || Up || Up</answer>.\n";

constexpr std::string_view kVocabulary = "P: player, _: empty, O: hole, G: goal, X: player in hole, √: player on goal";

class FrozenLakeFactory : public RagenFactory {
 public:
  FrozenLakeFactory()
      : RagenFactory({.max_turns = 5, .max_actions_per_turn = 2, .max_actions = 10, .max_response_words = 120}) {}

  Result<std::unique_ptr<Game>> make_game(std::uint64_t seed) const override {
    return std::unique_ptr<Game>(std::make_unique<FrozenLake>(options_, seed));
  }

  // Later actions of a turn are chosen as if the earlier ones went where they meant to.
  std::vector<std::string> plan(const Game& game, int actions_left, int count) const override {
    const auto& lake = dynamic_cast<const FrozenLake&>(game);
    std::vector<std::string> actions;
    int cell = lake.player();
    for (int left = actions_left; static_cast<int>(actions.size()) < count; --left) {
      const int action = solve_frozen_lake(options_, lake.map(), left)[cell];
      actions.emplace_back(kFrozenLakeActions[static_cast<std::size_t>(action)]);
      cell = frozen_lake_moves(options_, lake.map().size, cell, action).ends[1];
      if (const char kind = lake.map().cells[cell]; kind == 'G' || kind == 'H') break;
    }
    return actions;
  }

  std::string noted(const Game& game) const override {
    const auto& lake = dynamic_cast<const FrozenLake&>(game);
    const int goal = static_cast<int>(lake.map().cells.find('G')), size = lake.map().size;
    return "Player " + coordinate(lake.player() / size, lake.player() % size) + ", goal " +
           coordinate(goal / size, goal % size) + ".";
  }

 protected:
  void game_fields(FieldVisitor& visit) override {
    options_.fields(visit);
    visit.field("show_vocabulary", show_vocabulary_, "explain the map's symbols in the system message");
  }

  RagenText text() const override {
    return {.instruction = std::string(kFrozenLakeInstruction),
            .vocabulary = show_vocabulary_ ? std::string(kVocabulary) : std::string(),
            .actions = {kFrozenLakeActions.begin(), kFrozenLakeActions.end()}};
  }

  std::vector<std::string> words() const override { return all_coordinates(options_.size, options_.size); }

 private:
  FrozenLakeOptions options_;
  bool show_vocabulary_ = true;
};

}  // namespace

std::vector<int> solve_frozen_lake(const FrozenLakeOptions& options, const FrozenLakeMap& map, int moves) {
  constexpr double kSooner = 0.99;
  std::vector<double> value(map.cells.size(), 0);
  for (std::size_t cell = 0; cell < value.size(); ++cell) value[cell] = map.cells[cell] == 'G' ? 1 : 0;
  std::vector<int> best(map.cells.size(), 0);
  for (int left = 0; left < moves; ++left) {
    std::vector<double> before = value;
    for (std::size_t cell = 0; cell < value.size(); ++cell) {
      if (map.cells[cell] == 'G' || map.cells[cell] == 'H') continue;
      value[cell] = -1;
      for (int action = 0; action < 4; ++action) {
        const auto slip = frozen_lake_moves(options, map.size, static_cast<int>(cell), action);
        double expected = 0;
        for (std::size_t i = 0; i < 3; ++i) expected += kSooner * slip.chances[i] * before[slip.ends[i]];
        if (expected <= value[cell]) continue;
        value[cell] = expected;
        best[cell] = action;
      }
    }
  }
  return best;
}

std::unique_ptr<EnvironmentFactory> make_frozen_lake() { return std::make_unique<FrozenLakeFactory>(); }

}  // namespace carnot
