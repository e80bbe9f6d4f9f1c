#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>

#include "carnot/core/base/check.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/env/epoch_order.h"
#include "carnot/core/env/played_texts.h"
#include "carnot/worlds/alfworld/demonstrator.h"
#include "carnot/worlds/alfworld/environment.h"
#include "carnot/worlds/ragen/conversation.h"

namespace carnot {
namespace {

constexpr std::int64_t kTokenizerEpisodes = 64;

const std::vector<std::string> kTaskTypes = {"pick_and_place_simple",          "look_at_obj_in_light",
                                             "pick_clean_then_place_in_recep", "pick_heat_then_place_in_recep",
                                             "pick_cool_then_place_in_recep",  "pick_two_obj_and_place"};

enum class AlfworldStyle : std::uint8_t { VerlAgent, Ragen, Transcript };

struct AlfworldOptions {
  std::string task_source{};
  std::string train_split = "train";
  std::string eval_split = "valid_seen";
  AlfworldSelection selection{};
  AlfworldStyle style = AlfworldStyle::VerlAgent;
  AlfworldConversationOptions conversation{};
  int max_response_words = 200;
  double reward = 10;
  AlfworldDemonstrationOptions demonstration{};

  void fields(FieldVisitor& visit) {
    visit.field("task_source", task_source,
                "folder with a file of games per split, SPLIT.jsonl or .jsonl.xz, or ALFWorld's json_2.1.1");
    visit.field("train_split", train_split, "split of the training tasks: train, valid_seen, valid_unseen");
    visit.field("eval_split", eval_split, "split of the validation tasks");
    visit.field("task_types", selection.task_types, "types of tasks, as directories are named; empty: all six",
                one_of(kTaskTypes));
    visit.field("game", selection.game, "TASK_ID/TRIAL_ID, the only task, whatever its split; empty: all");
    enum_field(visit, "style", style, {"verl_agent", "ragen", "transcript"},
               "verl_agent: a separate prompt for every step; ragen: one growing conversation; transcript: one of bare "
               "observations, without admissible actions");
    visit.field("max_steps", conversation.max_steps, "steps per episode", between(1, kMaxEpisodeSteps));
    visit.field("history_length", conversation.history_length, "past steps that a prompt of style verl_agent shows",
                between(0, kMaxEpisodeSteps));
    visit.field("reward", reward, "of a game that is won; everything else earns 0",
                Limits{.low = 0, .high = 1e6, .open_low = true});
    visit.field("penalty", conversation.penalty, "taken off a turn whose response does not have the form asked for",
                at_least(0));
    visit.field("max_response_tokens", conversation.max_response_tokens, "tokens that a response may have",
                between(1, kMaxResponseTokens));
    visit.field("max_response_words", max_response_words, "response length that the prompt of style ragen asks for",
                between(1, kMaxResponseTokens));
    section(visit, "demonstration", demonstration, "how the script plays");
  }
};

/// ALFWorld as RAGEN shows it: the observation is followed by the admissible actions.
class RagenAlfworld final : public Game {
 public:
  explicit RagenAlfworld(Alfworld game) : game_(std::move(game)) {}

  std::string board_json() const override { return game_.board_json(); }
  std::string observation() const override {
    return game_.observation() + "\n\nAdmissible actions: [" + join(game_.admissible()) + "]";
  }

  GameStep step(std::string_view action) override {
    GameStep result = game_.step(action);
    result.observation = observation();
    return result;
  }

  std::string anchor() const override { return game_.observation(); }
  std::unique_ptr<Game> clone() const override { return std::make_unique<RagenAlfworld>(*this); }

  const Alfworld& game() const { return game_; }

 private:
  Alfworld game_;
};

/// What the system message says. RAGEN's prompt for ALFWorld is not published with its others; this one is Carnot's.
RagenText ragen_alfworld_text() {
  return {.instruction =
              "You are doing a household task in a text world. \n"
              "Every turn shows what you see and which actions are admissible now. \n"
              "The answer should be one admissible action, like <answer>go to desk 1</answer>\n"};
}

using AlfworldTasks = std::vector<std::shared_ptr<const AlfworldTask>>;

std::string in_tags(const DemonstratedAction& said, const std::string& tag) {
  return "<think>" + said.thought + "</think><" + tag + ">" + said.action + "</" + tag + ">";
}

class AlfworldFactory final : public EnvironmentFactory {
 public:
  void fields(FieldVisitor& visit) override { options_.fields(visit); }

  Status prepare(std::uint64_t seed) override {
    seed_ = seed;
    options_.conversation.transcript = options_.style == AlfworldStyle::Transcript;
    if (options_.task_source.empty())
      return Error{"env.task_source: names no folder; expected one with ALFWorld's games (docs/alfworld.md)"};
    CARNOT_RETURN_IF_ERROR(options_.selection.game.empty() ? read_splits() : read_game());
    order_ = std::make_unique<EpochOrder>(train_.size(), seed, "alfworld_epoch");
    return Done{};
  }

  std::unique_ptr<Environment> make(Split split, std::int64_t index) const override {
    const auto& played = task(split, index);
    Alfworld game(played, options_.reward);
    if (options_.style != AlfworldStyle::Ragen)
      return std::make_unique<AlfworldConversation>(options_.conversation, std::move(game));
    return std::make_unique<RagenConversation>(std::make_shared<const RagenText>(ragen_alfworld_text()), budgets(),
                                               std::make_unique<RagenAlfworld>(std::move(game)),
                                               alfworld_info(*played));
  }

  std::int64_t num_training_tasks() const override { return std::ssize(train_); }
  std::int64_t num_validation_tasks() const override { return std::ssize(held_out_); }

  Result<std::unique_ptr<Game>> make_game(std::uint64_t seed) const override {
    const auto& played = task(Split::Validation, static_cast<std::int64_t>(seed));
    return std::unique_ptr<Game>(std::make_unique<Alfworld>(played, options_.reward));
  }

  std::unique_ptr<ScriptedAgent> script(const Environment& environment, double, RandomStream random) const override {
    if (const auto* conversation = dynamic_cast<const AlfworldConversation*>(&environment))
      return make_alfworld_agent(conversation->game(), options_.demonstration, random,
                                 [](const DemonstratedAction& said) { return in_tags(said, "action"); });
    const auto* conversation = dynamic_cast<const RagenConversation*>(&environment);
    CARNOT_CHECK(conversation != nullptr, "an environment of another factory");
    return make_alfworld_agent(dynamic_cast<const RagenAlfworld&>(conversation->game()).game(), options_.demonstration,
                               random, [](const DemonstratedAction& said) { return in_tags(said, "answer"); });
  }

  std::vector<std::string> tokenizer_texts() const override {
    std::vector<std::string> texts;
    for (std::int64_t index = 0; index < kTokenizerEpisodes; ++index) {
      const auto environment = make(Split::Train, index);
      const Opening opening = environment->open();
      texts.push_back(opening.system + "\n" + opening.user);
      const auto agent =
          script(*environment, 1, RandomStream(derive_seed(seed_, "tokenizer", static_cast<std::uint64_t>(index))));
      std::ranges::move(played_texts(*environment, *agent), std::back_inserter(texts));
    }
    return texts;
  }

  std::vector<std::string> tokenizer_words() const override {
    std::set<std::string> words;
    for (const auto& played : train_)
      for (const NamedEntity& entity : played->room.names) {
        const std::string first = entity.name.substr(0, entity.name.find(' '));
        if (std::all_of(first.begin(), first.end(), [](unsigned char c) { return std::isalpha(c) != 0; }))
          words.insert(first);
      }
    for (const char* word :
         {"go",      "to",     "take",   "from", "move", "open", "close",     "use",     "clean",   "heat",
          "cool",    "slice",  "with",   "in",   "on",   "look", "inventory", "Next",    "Look",    "Not",
          "sure",    "try",    "find",   "drop", "put",  "pick", "light",     "user",    "system",  "assistant",
          "examine", "arrive", "closed", "You",  "you",  "see",  "the",       "The",     "a",       "and",
          "at",      "is",     "it",     "up",   "In",   "On",   "turn",      "nothing", "Nothing", "happens"})
      words.insert(word);
    return {words.begin(), words.end()};
  }

  std::vector<std::string> tokenizer_added_tokens() const override {
    const std::string tag = options_.style == AlfworldStyle::Ragen ? "answer" : "action";
    return {"<think>", "</think>", "<" + tag + ">", "</" + tag + ">"};
  }

 private:
  Status read_splits() {
    CARNOT_RETURN_IF_ERROR(read_split(options_.train_split, train_));
    if (options_.eval_split != options_.train_split) return read_split(options_.eval_split, held_out_);
    held_out_ = train_;
    return Done{};
  }

  Status read_split(const std::string& split, AlfworldTasks& tasks) const {
    auto games = read_alfworld_games(options_.task_source, split, options_.selection);
    if (!games) return Error{"env.task_source: " + games.error().message};
    for (AlfworldTask& game : *games) tasks.push_back(std::make_shared<const AlfworldTask>(std::move(game)));
    if (!tasks.empty()) return Done{};
    return Error{"env.task_source: " + options_.task_source + ": split " + split + " has no game" +
                 (options_.selection.task_types.empty() ? "" : " of the types in env.task_types")};
  }

  /// The one game that is requested, from the first split that has it; the small ones first.
  Status read_game() {
    std::set<std::string> looked_at;
    for (const std::string& split : {std::string("valid_seen"), std::string("valid_unseen"), options_.eval_split,
                                     std::string("train"), options_.train_split}) {
      if (!looked_at.insert(split).second || !has_alfworld_split(options_.task_source, split)) continue;
      auto games = read_alfworld_games(options_.task_source, split, {.game = options_.selection.game});
      if (!games) return Error{"env.task_source: " + games.error().message};
      if (games->empty()) continue;
      train_ = {std::make_shared<const AlfworldTask>(std::move(games->front()))};
      held_out_ = train_;
      return Done{};
    }
    return Error{"env.game: '" + options_.selection.game + "' is in no split of " + options_.task_source +
                 "; expected TASK_ID/TRIAL_ID"};
  }

  const std::shared_ptr<const AlfworldTask>& task(Split split, std::int64_t index) const {
    CARNOT_CHECK(order_ != nullptr, "prepare() comes first");
    CARNOT_CHECK_GE(index, 0);
    if (split == Split::Train) return train_[order_->row(index)];
    return held_out_[static_cast<std::size_t>(index) % held_out_.size()];
  }

  RagenBudgets budgets() const {
    return {.max_turns = options_.conversation.max_steps,
            .max_actions_per_turn = 1,
            .max_actions = options_.conversation.max_steps,
            .max_response_words = options_.max_response_words,
            .max_response_tokens = options_.conversation.max_response_tokens,
            .penalty = options_.conversation.penalty};
  }

  AlfworldOptions options_;
  std::uint64_t seed_ = 0;
  AlfworldTasks train_{}, held_out_{};
  std::unique_ptr<EpochOrder> order_{};
};

}  // namespace

std::unique_ptr<EnvironmentFactory> make_alfworld() { return std::make_unique<AlfworldFactory>(); }

}  // namespace carnot
