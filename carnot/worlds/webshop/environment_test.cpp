#include "carnot/worlds/webshop/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "carnot/core/base/file.h"
#include "carnot/core/env/play.h"
#include "carnot/worlds/entries.h"
#include "carnot/worlds/python/python_text.h"
#include "carnot/worlds/webshop/demonstrator.h"
#include "carnot/worlds/webshop/reward.h"
#include "testing/field_settings.h"
#include "testing/shops.h"
#include "testing/trials.h"

namespace carnot {
namespace {

using ShopSettings = std::map<std::string, std::string>;

const std::string kSmallShop = source_path("tests/tasks/webshop");

std::unique_ptr<EnvironmentFactory> webshop_with(const ShopSettings& settings, Status* status = nullptr) {
  auto factory = make_webshop();
  testing::FieldSettings fields(settings);
  factory->fields(fields);
  EXPECT_TRUE(fields.unused().empty());
  const Status prepared = factory->prepare(0);
  if (status != nullptr) {
    *status = prepared;
  } else {
    EXPECT_TRUE(prepared.ok()) << prepared.error().message;
  }
  return factory;
}

std::string with_part_replaced(std::string text, const std::string& part, const std::string& other) {
  const auto at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return at == std::string::npos ? text : text.replace(at, part.size(), other);
}

// The example of ActFocus: validation instance 351. Its price bound was drawn without a
// seed; here it is replaced.
TEST(RagenWebShop, OpensAsThePapersExampleDoes) {
  CARNOT_NEEDS_PUBLISHED_DATA();
  const auto factory = webshop_with({{"task_source", published_path("webshop")}});
  const auto environment = factory->make_instance(351);
  const Opening opening = environment->open();
  EXPECT_EQ(
      opening.system,
      "You're a helpful assistant. You are browsing an online shop. Based on the instruction, buy a product that "
      "close to the production description. You need to search, read the search results, pick a product, choose "
      "the size and color and buy. You should only choose action from the available actions list provided later. "
      " Example process: I need a gingko light and 20x20 pillow cover that is hand painted. First search[gingko "
      "light 20x20 pillow cover hand painted], answer format: <answer>search[blanket with fleece throw]</answer>. "
      "Valid answer is search[<keywords>] or click[<clickable>].");
  const auto bound = opening.user.find("lower than ") + 11;
  const std::string drawn = opening.user.substr(bound, opening.user.find(".00 dollars") - bound);
  EXPECT_EQ(
      with_part_replaced(opening.user, "lower than " + drawn, "lower than 70"),
      "\nTurn 1:\nState:\nInstruction: Find me machine wash, wash cold women's fashion hoodies & sweatshirts for dry "
      "clean, tumble dry with color: vintage camo, and size: large, and price lower than 70.00 dollars.We must buy a "
      "product within 10 actions. It doesn't have to match perfectly with description.\nSearch term should not include "
      "details like size, color.\nNever search for more than 2 times.\nDo not be too strict about the description, "
      "it's "
      "more important to buy one that is close enough within action limit.\nPrioritize click a product in the current "
      "page over going to next page.\nAlmost never click[next >] for more than 2 times.Almost never click[< prev] "
      "unless "
      "you are sure the product is on one of the previous pages.\nIf you have less than 3 actions left, just buy the "
      "first product you see in the current page.\nIf an matching option exists, make sure to click[size] then "
      "click[color], one at a time, before click[buy now], but don't have to if only 1 action left, in that case you "
      "just click[buy now]. Never click description.\n You must choose from these actions:search[<content>].\nYou have "
      "9 "
      "actions left. Always output: <think> [Your thoughts] </think> <answer> [your answer] </answer> with no extra "
      "text. Strictly follow this format. Max response length: 200 words (tokens).\n");
  EXPECT_EQ(opening.assistant_prefix, "<think>");

  const Reply reply = environment->step(
      "<think>a</think> <answer>search[women hooded sweatshirt vintage camo large machine wash cold]</answer>");
  EXPECT_THAT(reply.text, ::testing::StartsWith("Reward:\n0.0\n\nTurn 2:\nState:\nInstruction: [SEP] Find me"));
  EXPECT_THAT(reply.text, ::testing::HasSubstr("[SEP] Next > [SEP] B01HQTWL6S [SEP] Expression Tees"));
  EXPECT_THAT(reply.text, ::testing::HasSubstr("\n You must choose from these actions:click[back to search], "
                                               "click[next >], click[b01hqtwl6s], click["));
}

class RagenShopping : public testing::EveryShop {};
INSTANTIATE_TEST_SUITE_P(Data, RagenShopping, ::testing::Bool(), testing::data_name);

TEST_P(RagenShopping, PaysForTheRightPurchaseAloneAndReportsTheScore) {
  for (const bool right : {true, false}) {
    RagenWebShop game{WebShop(shop(), hoodie_goal())};
    game.step("search[women hooded sweatshirt vintage camo large machine wash cold]");
    game.step("click[" + python_lower(hoodie()) + "]");
    game.step("click[vintage camo]");
    if (right) game.step("click[large]");
    const GameStep bought = game.step("click[buy now]");
    EXPECT_TRUE(bought.done);
    EXPECT_EQ(bought.reward.value, right ? 1 : 0);
    EXPECT_EQ(python_number(bought.reward), right ? "1.0" : "0.0");
    EXPECT_EQ(bought.success, right);
    EXPECT_NEAR(game.measures().at("task_score"), right ? 1 : 6.0 / 7, 1e-12);
    EXPECT_EQ(game.measures().at("purchased"), 1);
  }
}

TEST_P(RagenShopping, OffersNoNextPageBehindTheLastResults) {
  RagenWebShop game{WebShop(shop(), 0)};
  game.step("search[women hooded sweatshirt]");
  for (int i = 0; i < 6; ++i) game.step("click[next >]");
  EXPECT_TRUE(
      game.observation().ends_with("\n You must choose from these actions:click[back to search], click[< prev]."));
  game.step("click[back to search]");
  EXPECT_TRUE(game.observation().starts_with("WebShop [SEP] Instruction: [SEP] "));
  EXPECT_TRUE(game.observation().ends_with("these actions:search[<content>]."));
}

// verl-agent's templates (Apache-2.0) as they are in its prompts/webshop.py.
constexpr const char* kPromptEnd =
    "\n].\n\nNow it's your turn to take one action for the current step.\nYou should first reason step-by-step about "
    "the "
    "current situation, then think carefully which admissible action best advances the shopping goal. This reasoning "
    "process MUST be enclosed within <think> </think> tags. \nOnce you've finished your reasoning, you should choose "
    "an "
    "admissible action for current step and present it within <action> </action> tags.\n";

TEST(VerlAgentShop, AsksForEachStepInAPromptOfItsOwnWithTheLastTwoSteps) {
  const auto factory = webshop_with({{"task_source", kSmallShop}, {"style", "verl_agent"}, {"goal", "3"}});
  const auto environment = factory->make(Split::Train, 0);
  const std::string task = dynamic_cast<const VerlAgentShop&>(*environment).shop().goal().instruction;
  const Opening opening = environment->open();
  EXPECT_EQ(
      opening.user,
      "\nYou are an expert autonomous agent operating in the WebShop e\u2011commerce environment. \nYour task is to: " +
          task +
          ".\nYour current observation is: 'Search'.\nYour admissible actions of the current situation are: \n[\n"
          "'search[<your query>]',\n'click[search]'," +
          kPromptEnd);

  const std::string think = "<think>a</think>";
  Reply reply = environment->step(think + "<action>Search[Sweater]</action>");
  EXPECT_EQ(reply.form, ReplyForm::FreshPrompt);
  const std::string results =
      "'Back to Search' [SEP] 'Page 1 (Total results: 1)' [SEP] 'Next >' [SEP] 'B000000005' [SEP] 'Women's Wool "
      "Sweater' "
      "[SEP] '$45.0'";
  EXPECT_EQ(environment->anchor(), results);
  EXPECT_EQ(
      reply.prompt.user,
      "\nYou are an expert autonomous agent operating in the WebShop e\u2011commerce environment.\nYour task is to: " +
          task +
          ".\nPrior to this step, you have already taken 1 step(s). Below are the most recent 1 observations and the "
          "corresponding actions you took: [Observation 1: ''Search'', Action 1: 'search[sweater]']\nYou are now at "
          "step 2 and your current observation is: " +
          results +
          ".\nYour admissible actions of the current situation are: \n[\n'click[back to search]',\n'click[next >]',\n"
          "'click[b000000005]'," +
          kPromptEnd);
  environment->step(think + "<action>click[next >]</action>");
  reply = environment->step(think + "<action>click[next >]</action>");
  EXPECT_THAT(
      reply.prompt.user,
      ::testing::HasSubstr("already taken 3 step(s). Below are the most recent 2 observations and the corresponding "
                           "actions you took: [Observation 2: '" +
                           results + "', Action 2: 'click[next >]']\n[Observation 3: '"));
}

TEST(VerlAgentShop, LeavesThePastOutOfAPromptThatWouldBeTooLong) {
  const auto factory =
      webshop_with({{"task_source", kSmallShop}, {"style", "verl_agent"}, {"goal", "3"}, {"longest_prompt", "1300"}});
  const auto environment = factory->make(Split::Train, 0);
  environment->open();
  EXPECT_THAT(environment->step("<think></think><action>look</action>").prompt.user, ::testing::HasSubstr("Prior to"));
  EXPECT_THAT(environment->step("<think></think><action>" + std::string(500, 'x') + "</action>").prompt.user,
              ::testing::Not(::testing::HasSubstr("Prior to")));
}

TEST(VerlAgentShop, PaysTenForTheRightPurchaseAndTakesATenthForABrokenForm) {
  const auto factory = webshop_with({{"task_source", kSmallShop}, {"style", "verl_agent"}, {"goal", "0"}});
  const auto environment = factory->make(Split::Validation, 4);
  environment->open();
  Reply reply = environment->step("no tags, but then the end: search[x]");
  EXPECT_FALSE(reply.valid_action);
  EXPECT_EQ(reply.penalty, -0.1);
  const auto agent = factory->script(*environment, 1, RandomStream(0));
  while (!reply.done) reply = environment->step(agent->respond(shown_text(reply)));
  EXPECT_EQ(reply.reward, 10);
  EXPECT_TRUE(reply.success);
  EXPECT_EQ(reply.outcome, Outcome::Finished);
  EXPECT_EQ(reply.measures.at("task_score"), 1);

  const auto idle = factory->make(Split::Validation, 4);
  idle->open();
  int turns = 0;
  for (reply = {}; !reply.done; ++turns) reply = idle->step("<think></think><action>search[mug]</action>");
  EXPECT_EQ(turns, 15);
  EXPECT_EQ(reply.outcome, Outcome::OutOfTurns);
  EXPECT_EQ(reply.reward, 0);
  EXPECT_EQ(reply.measures.at("purchased"), 0);
}

/// The texts of "'A' [SEP] 'B'", in lower case and a line each.
std::string as_lines(const std::string& page) {
  std::string lines = python_lower(page.substr(1, page.size() - 2));
  const std::string between = "' [sep] '";
  for (auto at = lines.find(between); at != std::string::npos; at = lines.find(between, at))
    lines.replace(at, between.size(), "\n");
  return lines;
}

TEST(VerlAgentShop, AsATranscriptIsTheSameGameWithItsBarePages) {
  ShopSettings settings{{"task_source", kSmallShop}, {"style", "verl_agent"}, {"careless_turns", "0.3"}};
  const auto prompts = webshop_with(settings);
  settings["style"] = "transcript";
  const auto transcripts = webshop_with(settings);
  for (std::int64_t index = 0; index < 20; ++index) {
    const auto prompted = prompts->make(Split::Train, index), shown = transcripts->make(Split::Train, index);
    prompted->open();
    const std::string task =
        "instruction:\n" + python_lower(dynamic_cast<const VerlAgentShop&>(*prompted).shop().goal().instruction) + "\n";
    EXPECT_EQ(shown->open().user, "webshop\n" + task + "search");
    const auto agent = prompts->script(*prompted, 1, RandomStream(static_cast<std::uint64_t>(index)));
    for (Reply reply; !reply.done;) {
      const PolicyResponse response = agent->respond("");
      reply = prompted->step(response);
      const Reply other = shown->step(response);
      ASSERT_EQ(other.done, reply.done);
      EXPECT_EQ(other.reward, reply.reward);
      EXPECT_EQ(other.success, reply.success);
      EXPECT_EQ(other.measures, reply.measures);
      if (reply.done) continue;
      EXPECT_EQ(other.form, ReplyForm::UserMessage);
      EXPECT_THAT(other.text, ::testing::EndsWith(task + as_lines(prompted->anchor())));
    }
  }
}

/// The game after the scripted shopper's purchase, and its number of actions.
std::pair<WebShop, int> shop_by_script(const std::shared_ptr<const Shop>& shop, std::size_t goal) {
  WebShop game(shop, goal);
  const ShopDemonstrator demonstrator(game);
  int actions = 0;
  for (bool done = false; !done && actions < 15; ++actions) done = game.step(demonstrator.next().action).done;
  return {game, actions};
}

class ScriptedShopping : public testing::EveryShop {};
INSTANTIATE_TEST_SUITE_P(Data, ScriptedShopping, ::testing::Bool(), testing::data_name);

// WebShop's colours are found within words: "dash" counts as "ash", which is no word of the goal's "dash". So some
// goals do not pay 1 for exactly what they ask for.
TEST_P(ScriptedShopping, BuysExactlyWhatEveryGoalAsksForWithinRagensNineActions) {
  const std::size_t stride = published() && testing::kSanitized ? 20 : 1;
  int whole = 0;
  for (std::size_t goal = 0; goal < shop()->num_goals(); goal += stride) {
    const auto [game, actions] = shop_by_script(shop(), goal);
    ASSERT_LE(actions, 9) << goal;
    ASSERT_EQ(game.state().page, ShopPage::Done) << goal;
    ASSERT_EQ(game.state().product, game.goal().product) << goal;
    std::set<std::pair<std::string, std::string>> wanted;
    for (const GoalOption& option : game.goal().options) wanted.emplace(option.name, option.value);
    const auto& chosen = game.state().chosen;
    EXPECT_EQ((std::set<std::pair<std::string, std::string>>(chosen.begin(), chosen.end())), wanted) << goal;

    int spoilt = 0;
    for (const GoalOption& option : game.goal().options) spoilt += option_hits({option.value}, {option}) == 0 ? 1 : 0;
    const auto asked = static_cast<double>(game.goal().attributes.size() + wanted.size() + 1);
    EXPECT_DOUBLE_EQ(game.reward(), (asked - spoilt) / asked) << game.goal().instruction;
    whole += game.reward() == 1 ? 1 : 0;
  }
  if (stride == 1) {
    EXPECT_EQ(whole, published() ? 6452 : 109);
  }
}

TEST_P(ScriptedShopping, SaysTheInstructionThenTheProductAndTheOptionsThatItClicks) {
  for (std::size_t goal = 0; goal < shop()->num_goals(); goal += published() ? 100 : 1) {
    WebShop game(shop(), goal);
    const ShopDemonstrator demonstrator(game);
    EXPECT_EQ(demonstrator.next().thought, python_lower(game.goal().instruction));
    for (bool done = false; !done;) {
      const auto move = demonstrator.next();
      const std::string clicked = move.action.substr(move.action.find('[') + 1);
      const bool named = game.state().page == ShopPage::Item ? clicked != "buy now]" : clicked.starts_with("b0");
      EXPECT_THAT(move.thought, ::testing::HasSubstr(named ? clicked.substr(0, clicked.size() - 1) : ""));
      done = game.step(move.action).done;
    }
  }
}

TEST_P(ScriptedShopping, MostlyBuysWhatPeopleAskFor) {
  const auto asked = shop(ShopGoalKind::Human);
  double sum = 0;
  for (std::size_t goal = 0; goal < asked->num_goals(); ++goal) sum += shop_by_script(asked, goal).first.reward();
  EXPECT_GT(sum / static_cast<double>(asked->num_goals()), 0.8);
}

TEST(WebShopScripts, SucceedInEveryStyleAndLessSoWhenCareless) {
  for (const char* style : {"ragen", "verl_agent", "transcript"}) {
    const auto solved = [&](const char* careless) {
      const auto factory = webshop_with({{"task_source", kSmallShop}, {"style", style}, {"careless_turns", careless}});
      int successes = 0;
      for (std::int64_t index = 0; index < 20; ++index) {
        const auto environment = factory->make(Split::Train, index);
        environment->open();
        const auto agent = factory->script(*environment, 1, RandomStream(static_cast<std::uint64_t>(index)));
        Reply reply;
        while (!reply.done) reply = environment->step(agent->respond(shown_text(reply)));
        successes += reply.success ? 1 : 0;
      }
      return successes;
    };
    EXPECT_EQ(solved("0"), 20) << style;
    EXPECT_LT(solved("0.6"), 18) << style;
  }
}

TEST(WebShopOptions, SayWhatIsWrongWithThem) {
  const auto message = [](const ShopSettings& settings) {
    Status status = Done{};
    webshop_with(settings, &status);
    return status.ok() ? "" : status.error().message;
  };
  EXPECT_THAT(message({}),
              ::testing::StartsWith("env.task_source: names no folder; expected one with WebShop's files"));
  EXPECT_THAT(message({{"task_source", "/nowhere"}}),
              ::testing::StartsWith("env.task_source: /nowhere: holds no file of products"));
  EXPECT_THAT(message({{"task_source", kSmallShop}, {"goal", "99"}}),
              ::testing::StartsWith("env.goal: there are 21 goals, numbered from 0; got 99"));
  EXPECT_EQ(message({{"task_source", kSmallShop}, {"num_products", "1"}}), "");
  const std::string pipe = ::testing::TempDir() + "carnot_webshop_" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(message({{"task_source", kSmallShop}, {"products_file", pipe}}), pipe + ": is not a regular file");
  ::unlink(pipe.c_str());
}

TEST(WebShopPlay, WritesClickablesBesideTheObservation) {
  const auto factory = webshop_with({{"task_source", kSmallShop}, {"goal", "3"}});
  std::istringstream in("search[sweater]\nclick[nothing]\nclick[b000000005]\nclick[buy now]\nclick[buy now]\n");
  std::ostringstream out;
  ASSERT_TRUE(play(*factory, {.name = "webshop", .json = true}, in, out).ok());
  const std::string text = out.str();
  std::vector<nlohmann::json> lines;
  for (const auto line : split_lines(text)) lines.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0].at("clickables"), nlohmann::json::array({"search"}));
  EXPECT_EQ(lines[0].at("has_search_bar"), true);
  EXPECT_EQ(lines[0].at("board").at("goal"), 3);
  EXPECT_EQ(lines[1].at("clickables"), nlohmann::json::array({"back to search", "next >", "b000000005"}));
  EXPECT_EQ(lines[1].at("reward"), 0);
  EXPECT_EQ(lines[2].at("observation"), lines[1].at("observation"));
  EXPECT_EQ(lines[2].at("valid"), false);
  EXPECT_EQ(lines[4].at("done"), true);
  EXPECT_EQ(lines[4].at("clickables"), nlohmann::json::array());
}

}  // namespace
}  // namespace carnot
