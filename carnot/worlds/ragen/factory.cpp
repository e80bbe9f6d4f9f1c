#include "carnot/worlds/ragen/factory.h"

#include <algorithm>
#include <cctype>

#include "carnot/core/base/strings.h"
#include "carnot/core/env/played_texts.h"
#include "carnot/worlds/ragen/grid_text.h"

namespace carnot {
namespace {

constexpr std::uint64_t kTrainSeed = 10000;
constexpr std::uint64_t kValidationSeed = 123;

class RagenAgent : public ScriptedAgent {
 public:
  RagenAgent(const RagenFactory& factory, const RagenConversation& conversation, RandomStream random)
      : factory_(factory), conversation_(conversation), random_(random) {}

  PolicyResponse respond(std::string_view) override {
    const Game& game = conversation_.game();
    const int count = std::min(conversation_.actions_left(), factory_.budgets().max_actions_per_turn);
    std::vector<std::string> actions;
    const bool careful = !random_.chance(factory_.careless_turns());
    if (careful) actions = factory_.plan(game, conversation_.actions_left(), count);
    const bool planned = !actions.empty();
    while (!planned && static_cast<int>(actions.size()) < count)
      actions.push_back(factory_.careless_action(game, random_));
    return "<think>" + thought(game, planned, actions) + "</think><answer>" + join(actions, " || ") + "</answer>";
  }

 private:
  std::string thought(const Game& game, bool planned, const std::vector<std::string>& actions) {
    const std::string before = factory_.noted(game) + idle_thoughts(factory_.thoughts(), random_);
    if (!factory_.thoughts().plan) return before;
    return before + " " + factory_.announced(planned, actions);
  }

  const RagenFactory& factory_;
  const RagenConversation& conversation_;
  RandomStream random_;
};

}  // namespace

void RagenFactory::fields(FieldVisitor& visit) {
  game_fields(visit);
  budgets_.fields(visit);
  visit.field("careless_turns", careless_turns_, "share of random turns in demonstrations", between(0, 1));
  section(visit, "thoughts", thoughts_, "what demonstrations say between <think> and </think>");
}

Status RagenFactory::prepare(std::uint64_t) {
  text_ = std::make_shared<const RagenText>(text());
  return check();
}

std::unique_ptr<Environment> RagenFactory::make(Split split, std::int64_t index) const {
  return make_instance((split == Split::Train ? kTrainSeed : kValidationSeed) + static_cast<std::uint64_t>(index));
}

std::unique_ptr<Environment> RagenFactory::make_instance(std::uint64_t seed) const {
  CARNOT_CHECK(text_ != nullptr, "prepare() comes first");
  return std::make_unique<RagenConversation>(text_, budgets_, make_game(seed).value(),
                                             std::map<std::string, std::string>{{"seed", std::to_string(seed)}});
}

std::unique_ptr<ScriptedAgent> RagenFactory::script(const Environment& environment, double, RandomStream random) const {
  const auto* conversation = dynamic_cast<const RagenConversation*>(&environment);
  CARNOT_CHECK(conversation != nullptr, "an environment of another factory");
  return std::make_unique<RagenAgent>(*this, *conversation, random);
}

std::string RagenFactory::announced(bool planned, std::span<const std::string> actions) const {
  return (planned ? "Plan " : "Not sure, try ") + join(actions, ", ") + ".";
}

std::string RagenFactory::careless_action(const Game&, RandomStream& random) const {
  return random.pick(text_->actions);
}

std::vector<std::string> RagenFactory::tokenizer_texts() const { return training_texts(*this); }

namespace {

bool all_letters(const std::string& word) {
  return std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isalpha(c) != 0; });
}

}  // namespace

std::vector<std::string> RagenFactory::tokenizer_words() const {
  std::vector<std::string> all = text().actions;
  for (auto& word : words())
    if (all_letters(word)) all.push_back(std::move(word));
  return all;
}

std::vector<std::string> RagenFactory::tokenizer_added_tokens() const {
  std::vector<std::string> all{"<think>", "</think>", "<answer>", "</answer>", "||"};
  for (auto& word : words())
    if (!all_letters(word)) all.push_back(std::move(word));
  return all;
}

std::vector<std::string> all_coordinates(int rows, int columns) {
  std::vector<std::string> all;
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column) all.push_back(coordinate(row, column));
  return all;
}

}  // namespace carnot
