// The table of environments, and what a factory does where it says nothing else.
#include "carnot/base/nearest_word.h"
#include "carnot/base/strings.h"
#include "carnot/env/environment.h"
#include "carnot/env/frozen_lake/factory.h"
#include "carnot/env/gsm8k/environment.h"
#include "carnot/env/search_qa/factory.h"
#include "carnot/env/skeleton/environment.h"
#include "carnot/env/sokoban/factory.h"
#include "carnot/env/sudoku/factory.h"
#include "carnot/env/sudoku/game.h"

namespace carnot {

const std::vector<EnvironmentEntry>& environments() {
  static const std::vector<EnvironmentEntry> table = {
      {"sokoban", "push boxes onto targets (RAGEN)", make_sokoban},
      {"frozen_lake", "cross slippery ice (RAGEN, Gymnasium)", make_frozen_lake},
      {"sudoku", "4x4 Sudoku with feedback (RAGEN)", make_sudoku},
      {"search_qa", "questions of one to three hops over an invented world, with a search tool", make_search_qa},
      {"gsm8k", "word problems in one turn, from files of GSM8K's or verl's rows", make_gsm8k},
      {"skeleton", "guess a number: a small environment to copy", make_skeleton},
  };
  return table;
}

Result<std::unique_ptr<EnvironmentFactory>> make_environment_factory(std::string_view name) {
  std::vector<std::string> known;
  for (const auto& entry : environments()) {
    if (entry.name == name) return entry.make();
    known.emplace_back(entry.name);
  }
  return Error{unknown_word("environment", name, known)};
}

std::unique_ptr<Environment> EnvironmentFactory::make_instance(std::uint64_t seed) const {
  return make(Split::Validation, static_cast<std::int64_t>(seed));
}

std::string shown_text(const Reply& reply) {
  if (reply.form == ReplyForm::FreshPrompt)
    return reply.prompt.user.empty() && !reply.prompt.history.empty() ? reply.prompt.history.back().content
                                                                      : reply.prompt.user;
  if (reply.form != ReplyForm::ToolResult) return reply.text;
  std::vector<std::string> texts;
  for (const ToolMessage& result : reply.results) texts.push_back(result.text);
  return join(texts, "\n");
}

Result<std::unique_ptr<Game>> EnvironmentFactory::make_game(std::uint64_t) const { return std::unique_ptr<Game>(); }

std::unique_ptr<ScriptedAgent> EnvironmentFactory::script(const Environment&, double, RandomStream) const {
  return nullptr;
}

std::unique_ptr<Environment> EnvironmentFactory::make_demonstrated(std::int64_t index, double) const {
  return make(Split::Train, index);
}

}  // namespace carnot
