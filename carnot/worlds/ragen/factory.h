// worlds/ragen/factory.h -- makes the tasks of a game that is played in RAGEN's conversation: a game fills in the rest.
//
// Seeds are RAGEN's: training task i is instance 10000 + i, validation task i is instance 123 + i.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "carnot/core/env/environment.h"
#include "carnot/worlds/ragen/conversation.h"
#include "carnot/worlds/ragen/thoughts.h"

namespace carnot {

class RagenFactory : public EnvironmentFactory {
 public:
  void fields(FieldVisitor& visit) final;
  Status prepare(std::uint64_t seed) final;
  std::unique_ptr<Environment> make(Split split, std::int64_t index) const final;
  std::unique_ptr<Environment> make_instance(std::uint64_t seed) const final;

  /// Plays plan() turn by turn, with thoughts; `careless_turns` of its turns are random, and say "Not sure" if thoughts
  /// have a plan. The factory and the environment must outlive it.
  std::unique_ptr<ScriptedAgent> script(const Environment& environment, double progress,
                                        RandomStream random) const final;

  std::vector<std::string> tokenizer_texts() const final;
  std::vector<std::string> tokenizer_words() const final;
  std::vector<std::string> tokenizer_added_tokens() const final;

  /// The next actions of good play, best first; at most `count` of them, for a game with `actions_left` to spend.
  virtual std::vector<std::string> plan(const Game& game, int actions_left, int count) const = 0;

  /// An action as a careless player picks it; by default any of text().actions.
  virtual std::string careless_action(const Game& game, RandomStream& random) const;

  /// What a player notes about the state before it decides: "Player (2, 3), goal (3, 0)."
  virtual std::string noted(const Game& game) const = 0;

  /// The end of a thought, before actions of plan() or careless ones.
  virtual std::string announced(bool planned, std::span<const std::string> actions) const;

  const RagenBudgets& budgets() const { return budgets_; }
  const ThoughtOptions& thoughts() const { return thoughts_; }
  double careless_turns() const { return careless_turns_; }

 protected:
  explicit RagenFactory(const RagenBudgets& budgets) : budgets_(budgets) {}

  virtual void game_fields(FieldVisitor& visit) = 0;
  virtual RagenText text() const = 0;

  /// What is wrong with the options together; called by prepare().
  virtual Status check() const { return Done{}; }

  /// More words for small tokenizers: coordinates, symbols.
  virtual std::vector<std::string> words() const { return {}; }

 private:
  RagenBudgets budgets_;
  double careless_turns_ = 0;
  ThoughtOptions thoughts_;
  std::shared_ptr<const RagenText> text_;
};

/// "(0, 0)", "(0, 1)", ... of a grid: for words().
std::vector<std::string> all_coordinates(int rows, int columns);

}  // namespace carnot
