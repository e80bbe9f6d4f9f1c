#include "carnot/core/base/check.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/env/played_texts.h"
#include "carnot/worlds/webshop/demonstrator.h"
#include "carnot/worlds/webshop/environment.h"
#include "carnot/worlds/webshop/splits.h"

namespace carnot {
namespace {

enum class ShopStyle : std::uint8_t { Ragen, VerlAgent, Transcript };

/// Plays the demonstrator's moves in the words of the environment's protocol.
class ShopAgent final : public ScriptedAgent {
 public:
  ShopAgent(const WebShop& shop, std::string_view tag, double careless, RandomStream random)
      : demonstrator_(shop), tag_(tag), careless_(careless), random_(random) {}

  PolicyResponse respond(std::string_view) override {
    const auto move = random_.chance(careless_) ? demonstrator_.careless(random_) : demonstrator_.next();
    return "<think>" + move.thought + "</think><" + tag_ + ">" + move.action + "</" + tag_ + ">";
  }

 private:
  ShopDemonstrator demonstrator_;
  std::string tag_;
  double careless_;
  RandomStream random_;
};

const WebShop& shop_of(const Environment& environment) {
  if (const auto* shop = dynamic_cast<const VerlAgentShop*>(&environment)) return shop->shop();
  const auto* conversation = dynamic_cast<const RagenConversation*>(&environment);
  CARNOT_CHECK(conversation != nullptr, "an environment of another factory");
  const auto* game = dynamic_cast<const RagenWebShop*>(&conversation->game());
  CARNOT_CHECK(game != nullptr, "an environment of another factory");
  return game->shop();
}

class WebShopFactory final : public EnvironmentFactory {
 public:
  void fields(FieldVisitor& visit) override {
    shop_options_.fields(visit);
    enum_field(visit, "style", style_, {"ragen", "verl_agent", "transcript"},
               "ragen: one conversation; verl_agent: a fresh prompt with memory for each step; transcript: one "
               "conversation of bare pages, without advice and lists of actions");
    enum_field(visit, "splits", order_.splits, {"ragen", "verl_agent", "webshop"},
               "which goals train and which evaluate, and in what order");
    enum_field(visit, "validation", order_.validation, {"validation", "test"},
               "goals that evaluate; verl_agent has only one kind");
    visit.field("draws_per_step", order_.draws_per_step,
                "verl_agent's splits: different goals that a training step draws; as train.groups_per_step",
                between(1, 1e8));
    visit.field("goal", goal_, "every task is this goal, by its number after the first shuffle; -1: the split's",
                between(-1, 1e8));
    visit.field("max_turns", max_turns_, "turns per episode, each with one action; 0: 9 (ragen), 15 (others)",
                between(0, kMaxEpisodeSteps));
    visit.field("max_response_tokens", max_response_tokens_,
                "tokens that a response may have; 0: 400 (ragen), 512 (others)", between(0, kMaxResponseTokens));
    visit.field("max_response_words", max_response_words_, "ragen: response length that the prompt asks for",
                between(1, kMaxResponseTokens));
    visit.field("history_length", verl_agent_.history_length, "verl_agent: past steps that a prompt tells of",
                between(0, kMaxEpisodeSteps));
    visit.field("longest_prompt", verl_agent_.longest_prompt,
                "verl_agent: characters beyond which a prompt goes without its past steps", between(0, 1e8));
    visit.field("reward", verl_agent_.reward, "verl_agent, transcript: reward of buying exactly what was asked for");
    visit.field("penalty", verl_agent_.penalty, "taken off the score of a turn whose form is broken", at_least(0));
    visit.field("careless_turns", careless_turns_, "share of random turns in demonstrations", between(0, 1));
  }

  Status prepare(std::uint64_t seed) override {
    CARNOT_ASSIGN_OR_RETURN(auto shop, Shop::open(shop_options_));
    shop_ = std::move(shop);
    if (goal_ >= static_cast<std::int64_t>(shop_->num_goals()))
      return Error{"env.goal: there are " + std::to_string(shop_->num_goals()) + " goals, numbered from 0; got " +
                   std::to_string(goal_)};
    if (goal_ < 0 && shop_->num_goals() < 3)
      return Error{"env.goals: splits need at least three goals, found " + std::to_string(shop_->num_goals())};
    order_.seed = seed;
    if (goal_ < 0) goals_ = std::make_unique<ShopOrder>(shop_->num_goals(), order_);
    settle_budgets();
    return Done{};
  }

  std::unique_ptr<Environment> make(Split split, std::int64_t index) const override {
    CARNOT_CHECK(shop_ != nullptr, "prepare() comes first");
    if (goal_ >= 0) return environment(static_cast<std::size_t>(goal_));
    return environment(split == Split::Train ? goals_->train(index) : goals_->validation(index));
  }

  std::int64_t num_validation_tasks() const override {
    return goal_ >= 0 ? 1 : static_cast<std::int64_t>(goals_->num_validation());
  }

  std::unique_ptr<Environment> make_instance(std::uint64_t seed) const override {
    return environment(instance_goal(seed));
  }

  Result<std::unique_ptr<Game>> make_game(std::uint64_t seed) const override {
    return std::unique_ptr<Game>(std::make_unique<WebShop>(shop_, instance_goal(seed)));
  }

  std::unique_ptr<ScriptedAgent> script(const Environment& environment, double, RandomStream random) const override {
    return std::make_unique<ShopAgent>(shop_of(environment), tag(), careless_turns_, random);
  }

  std::vector<std::string> tokenizer_texts() const override { return training_texts(*this); }

  std::vector<std::string> tokenizer_added_tokens() const override {
    return {"<think>", "</think>", "<" + tag() + ">", "</" + tag() + ">"};
  }

 private:
  std::string tag() const { return style_ == ShopStyle::Ragen ? "answer" : "action"; }

  std::size_t instance_goal(std::uint64_t seed) const {
    CARNOT_CHECK(shop_ != nullptr, "prepare() comes first");
    return goal_ >= 0 ? static_cast<std::size_t>(goal_) : goals_->instance(seed);
  }

  std::unique_ptr<Environment> environment(std::size_t goal) const {
    WebShop shop(shop_, goal);
    if (style_ != ShopStyle::Ragen) return std::make_unique<VerlAgentShop>(std::move(shop), verl_agent_);
    auto info = shop.info();
    return std::make_unique<RagenConversation>(text_, ragen_, std::make_unique<RagenWebShop>(std::move(shop)),
                                               std::move(info));
  }

  void settle_budgets() {
    if (max_turns_ > 0) ragen_.max_turns = ragen_.max_actions = verl_agent_.max_turns = max_turns_;
    if (max_response_tokens_ > 0) ragen_.max_response_tokens = verl_agent_.max_response_tokens = max_response_tokens_;
    ragen_.max_response_words = max_response_words_;
    ragen_.penalty = verl_agent_.penalty;
    verl_agent_.transcript = style_ == ShopStyle::Transcript;
  }

  ShopOptions shop_options_;
  ShopStyle style_ = ShopStyle::Ragen;
  ShopOrderOptions order_;
  std::int64_t goal_ = -1;
  int max_turns_ = 0;
  int max_response_tokens_ = 0;
  int max_response_words_ = 200;
  RagenBudgets ragen_{.max_turns = 9, .max_actions_per_turn = 1, .max_actions = 9};
  VerlAgentShopOptions verl_agent_;
  double careless_turns_ = 0;

  std::shared_ptr<const Shop> shop_;
  std::unique_ptr<ShopOrder> goals_;
  std::shared_ptr<const RagenText> text_ = std::make_shared<const RagenText>(ragen_webshop_text());
};

}  // namespace

std::unique_ptr<EnvironmentFactory> make_webshop() { return std::make_unique<WebShopFactory>(); }

}  // namespace carnot
