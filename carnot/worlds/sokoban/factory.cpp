#include "carnot/worlds/ragen/factory.h"

#include "carnot/worlds/sokoban/game.h"
#include "carnot/worlds/sokoban/solver.h"

namespace carnot {
namespace {

constexpr std::string_view kSokobanInstruction =
    "You are solving the Sokoban puzzle. \n"
    "You are the player and you need to push all boxes to targets. \n"
    "When you are right next to a box, you can push it by moving in the same direction. \n"
    "You cannot push a box through a wall, and you cannot pull a box. \n"
    "The answer should be a sequence of actions, like <answer>Right || Right || Up</answer>\n";

class SokobanFactory : public RagenFactory {
 public:
  SokobanFactory()
      : RagenFactory({.max_turns = 5, .max_actions_per_turn = 2, .max_actions = 10, .max_response_words = 100}) {}

  Result<std::unique_ptr<Game>> make_game(std::uint64_t seed) const override {
    CARNOT_ASSIGN_OR_RETURN(auto room, make_sokoban_room(options_.room(), seed));
    return std::unique_ptr<Game>(std::make_unique<Sokoban>(options_, std::move(room)));
  }

  std::vector<std::string> plan(const Game& game, int actions_left, int count) const override {
    const SokobanRoom& room = dynamic_cast<const Sokoban&>(game).room();
    std::vector<std::string> actions;
    for (const SokobanMove move : solve_sokoban(room, actions_left)) {
      if (static_cast<int>(actions.size()) == count) break;
      actions.emplace_back(kSokobanActions[static_cast<std::size_t>(move)]);
    }
    return actions;
  }

  std::string noted(const Game& game) const override { return "\n" + dynamic_cast<const Sokoban&>(game).pieces(); }

  /// Without the actions, which the answer has: small policies did not learn to copy the first of them.
  std::string announced(bool planned, std::span<const std::string>) const override {
    return planned ? "Plan." : "Not sure.";
  }

 protected:
  void game_fields(FieldVisitor& visit) override {
    options_.fields(visit);
    visit.field("show_vocabulary", show_vocabulary_, "explain the map's symbols in the system message");
  }

  RagenText text() const override {
    RagenText text{.instruction = std::string(kSokobanInstruction)};
    if (show_vocabulary_)
      for (const auto& [symbol, meaning] : sokoban_symbols(options_.letter_symbols))
        text.vocabulary.append(text.vocabulary.empty() ? "" : ", ").append(symbol).append(": ").append(meaning);
    text.actions.assign(kSokobanActions.begin(), kSokobanActions.end());
    return text;
  }

  Status check() const override {
    CARNOT_RETURN_IF_ERROR(make_sokoban_room(options_.room(), 0));
    return Done{};
  }

  std::vector<std::string> words() const override { return all_coordinates(options_.dim_x, options_.dim_y); }

 private:
  SokobanOptions options_;
  bool show_vocabulary_ = true;
};

}  // namespace

std::unique_ptr<EnvironmentFactory> make_sokoban() { return std::make_unique<SokobanFactory>(); }

}  // namespace carnot
