// worlds/ragen/conversation.h -- RAGEN's conversation around a game: prompts, parsing of answers, budgets, penalties.
//
// The policy thinks and answers, `<think>...</think><answer>Up || Left</answer>`; the actions run in order; the next
// user message shows the reward and the state. The opening `<think>` belongs to the prompt (assistant_prefix).
// Unlike RAGEN, a response is never rewritten and no old turn is dropped: tokens stay as sampled.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/core/env/environment.h"
#include "carnot/core/env/game.h"
#include "carnot/core/env/plain_view.h"

namespace carnot {

/// What the prompts say about a game.
struct RagenText {
  std::string instruction{};
  std::string vocabulary{};            ///< "#: wall, _: empty"; empty: not shown
  std::vector<std::string> actions{};  ///< names; empty: the game reads free text, and all of it counts as valid
};

struct RagenBudgets {
  int max_turns = 5;
  int max_actions_per_turn = 2;  ///< further ones of an answer are ignored
  int max_actions = 10;          ///< an episode
  int max_response_words = 100;  ///< as the prompt says; the real limit is max_response_tokens
  int max_response_tokens = 400;
  double penalty = 0.1;  ///< off the score of a turn without a valid action, or with an unknown one

  void fields(FieldVisitor& visit);
};

struct RagenAnswer {
  std::string thought{};
  std::vector<std::string> actions{};  ///< as written, stripped, not empty
  bool parsed = false;                 ///< the form was kept
};

/// The first `<think>...</think>`, blanks, `<answer>...</answer>`; tags and chat tokens inside are removed, the answer
/// split at `||`, the first `max_actions` kept.
RagenAnswer parse_ragen_answer(std::string_view response, int max_actions);

class RagenConversation : public Environment, public PlainlyShown {
 public:
  RagenConversation(std::shared_ptr<const RagenText> text, const RagenBudgets& budgets, std::unique_ptr<Game> game,
                    std::map<std::string, std::string> info);

  Protocol protocol() const override;
  Opening open() override;

  /// Measures at the end: "actions" (number played), "effective_actions" and "valid_turns" (shares); and the
  /// game's own.
  Reply step(const PolicyResponse& response) override;

  std::string anchor() const override { return game_->anchor(); }
  std::map<std::string, std::string> info() const override { return info_; }
  Branching branching() const override { return Branching::Cloned; }
  PlainView plain_view() const override;
  std::unique_ptr<Environment> clone() const override;
  void redraw(std::uint64_t key) override { game_->redraw(key); }

  const Game& game() const { return *game_; }
  int actions_left() const { return budgets_.max_actions - actions_; }

 private:
  struct Played {
    Reward reward{.value = 0, .integer = true};
    bool done = false;
    bool success = false;
  };

  std::string system_message() const;
  std::string turn_message(bool warn) const;
  Played play(const std::vector<std::string>& actions);

  std::shared_ptr<const RagenText> text_;
  RagenBudgets budgets_;
  std::unique_ptr<Game> game_;
  std::map<std::string, std::string> info_;
  int turns_ = 0;
  int valid_turns_ = 0;
  int actions_ = 0;
  int effective_actions_ = 0;
  bool done_ = false;
};

}  // namespace carnot
