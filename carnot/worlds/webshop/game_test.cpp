#include "carnot/worlds/webshop/game.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "carnot/core/base/random.h"
#include "carnot/core/base/strings.h"
#include "carnot/worlds/python/python_text.h"
#include "testing/shops.h"
#include "testing/trials.h"

namespace carnot {
namespace {

class WebShopPages : public testing::EveryShop {
 protected:
  static WebShop shopping() { return {shop(), hoodie_goal()}; }
  static std::string open_hoodie() { return "click[" + python_lower(hoodie()) + "]"; }

  // What the hoodie's pages say.
  static std::string options_and_title() {
    return published() ? "xx-large [SEP] 3x-large [SEP] 4x-large [SEP] color [SEP] black [SEP] charcoal grey [SEP] "
                         "forest green [SEP] heather grey [SEP] kelly green [SEP] maroon [SEP] navy blue [SEP] red "
                         "[SEP] royal blue [SEP] white [SEP] cotton candy [SEP] sand camo [SEP] vintage camo [SEP] "
                         "Expression Tees Pug Life Funny Thug Life Unisex Adult Hoodie"
                       : "color [SEP] black [SEP] forest green [SEP] maroon [SEP] sand camo [SEP] vintage camo [SEP] "
                         "Walrus Bay Choir of Walruses Unisex Adult Hoodie";
  }
  static std::string description() {
    return published() ? "Our professionally printed" : "A hooded sweatshirt with a choir";
  }
  static std::string features() {
    return published() ? "50% Polyester, 50% Cotton [SEP] Pull" : "60% Cotton, 40% Polyester [SEP] Pull";
  }
};
INSTANTIATE_TEST_SUITE_P(Data, WebShopPages, ::testing::Bool(), testing::data_name);

class WebShopActions : public WebShopPages {};
INSTANTIATE_TEST_SUITE_P(Data, WebShopActions, ::testing::Bool(), testing::data_name);

using Texts = std::vector<std::string>;

TEST_P(WebShopPages, BeginWithTheInstructionAndASearchBar) {
  const WebShop game = shopping();
  const std::string& instruction = game.goal().instruction;
  EXPECT_EQ(game.observation(), "WebShop [SEP] Instruction: [SEP] " + instruction + " [SEP] Search");
  EXPECT_EQ(game.clickables(), Texts{"search"});
  EXPECT_TRUE(game.has_search_bar());
}

TEST_P(WebShopPages, ListTenResultsAndEndlessNextPages) {
  WebShop game = shopping();
  const GameStep found = game.step("search[Women Hooded Sweatshirt]");
  EXPECT_TRUE(found.valid && found.effective && !found.done);
  const ShopProduct& first = game.shop().product(game.state().results.at(0));
  EXPECT_TRUE(
      found.observation.starts_with("Instruction: [SEP] " + game.goal().instruction +
                                    " [SEP] Back to Search [SEP] Page 1 (Total results: 50) [SEP] Next > [SEP] " +
                                    first.asin + " [SEP] " + first.title + " [SEP] " + first.price_text()))
      << found.observation;
  EXPECT_EQ(game.clickables().size(), 12u);
  EXPECT_EQ(game.clickables()[2], python_lower(first.asin));
  for (int page = 2; page <= 7; ++page) EXPECT_TRUE(game.step("click[Next >]").effective);
  EXPECT_TRUE(
      game.observation().ends_with(" [SEP] Back to Search [SEP] Page 7 (Total results: 50) [SEP] < Prev [SEP] Next >"));
  EXPECT_EQ(game.clickables(), (Texts{"back to search", "< prev", "next >"}));
  game.step("click[< prev]");
  EXPECT_EQ(game.state().results_page, 6);
}

TEST_P(WebShopPages, OfAProductListOptionsTitleAndPrice) {
  WebShop game = shopping();
  game.step("search[women hooded sweatshirt vintage camo large machine wash cold]");
  const GameStep opened = game.step("click[" + hoodie() + "]");
  EXPECT_EQ(
      opened.observation,
      "Instruction: [SEP] " + game.goal().instruction +
          " [SEP] Back to Search [SEP] < Prev [SEP] size [SEP] small [SEP] medium [SEP] large [SEP] x-large [SEP] " +
          options_and_title() +
          " [SEP] Price: $36.99 to $48.99 [SEP] Rating: N.A. [SEP] Description [SEP] Features [SEP] Reviews [SEP] Buy "
          "Now");
  const Texts offered = game.clickables();
  EXPECT_EQ(Texts(offered.begin(), offered.begin() + 7),
            (Texts{"back to search", "< prev", "description", "features", "reviews", "buy now", "small"}));
  const std::string text = game.observation();
  EXPECT_TRUE(game.step("click[large]").effective);
  EXPECT_EQ(game.observation(), text) << "the page does not show what is chosen";
  EXPECT_FALSE(game.step("click[large]").effective);
}

TEST_P(WebShopPages, OfDescriptionFeaturesAndReviewsLeadBackToTheProductWithItsChoice) {
  WebShop game = shopping();
  game.step("search[women hooded sweatshirt vintage camo large machine wash cold]");
  game.step(open_hoodie());
  game.step("click[large]");
  const std::string head = "Instruction: [SEP] " + game.goal().instruction + " [SEP] Back to Search [SEP] < Prev";
  EXPECT_EQ(game.step("click[Reviews]").observation, head);
  game.step("click[< prev]");
  EXPECT_TRUE(game.step("click[description]").observation.starts_with(head + " [SEP] " + description()));
  EXPECT_EQ(game.clickables(), (Texts{"back to search", "< prev"}));
  EXPECT_FALSE(game.step("click[description]").valid);
  game.step("click[< prev]");
  EXPECT_TRUE(game.step("click[features]").observation.starts_with(head + " [SEP] " + features()));
  game.step("click[< prev]");
  EXPECT_EQ(game.state().chosen.size(), 1u);
  game.step("click[< prev]");
  EXPECT_EQ(game.state().page, ShopPage::Results);
  EXPECT_TRUE(game.state().chosen.empty()) << "leaving the product forgets its options";
}

TEST_P(WebShopPages, EndWithTheScoreAndWhatWasBought) {
  WebShop game = shopping();
  game.step("search[women hooded sweatshirt vintage camo large machine wash cold]");
  game.step(open_hoodie());
  game.step("click[vintage camo]");
  game.step("click[large]");
  const GameStep bought = game.step("click[buy now]");
  EXPECT_EQ(
      bought.observation,
      "Thank you for shopping with us! [SEP] Your code: [SEP] None [SEP] (Paste it in your MTurk interface.) [SEP] "
      "Purchased [SEP] asin [SEP] " +
          hoodie() +
          " [SEP] options [SEP] {\"color\": \"vintage camo\", \"size\": "
          "\"large\"} [SEP] attrs [SEP] None [SEP] category [SEP] None [SEP] query [SEP] None [SEP] product category "
          "[SEP] None [SEP] Target [SEP] asin [SEP] options [SEP] attrs [SEP] price upper [SEP] instuction text [SEP] "
          "category [SEP] product category [SEP] query [SEP] Goal [SEP] None [SEP] Reward [SEP] Your score (min 0.0, "
          "max 1.0) [SEP] 1.0 [SEP] Reward Details [SEP] None");
  EXPECT_TRUE(bought.done && bought.success);
  EXPECT_EQ(bought.reward.value, 1);
  EXPECT_TRUE(game.clickables().empty());
  EXPECT_THROW(game.step("search[x]"), CheckError);
}

TEST_P(WebShopPages, PayLessForLessThanWhatWasAskedFor) {
  WebShop game = shopping();  // four attributes, two options, the price
  game.step("search[women hooded sweatshirt vintage camo large machine wash cold]");
  game.step(open_hoodie());
  game.step("click[black]");
  game.step("click[large]");
  const GameStep bought = game.step("click[buy now]");
  EXPECT_DOUBLE_EQ(bought.reward.value, 6.0 / 7);
  EXPECT_FALSE(bought.success);
}

TEST_P(WebShopActions, ThatTheSiteDoesNotTakeChangeNothing) {
  WebShop game = shopping();
  const auto refused = [&](const std::string& action) {
    const std::string before = game.anchor();
    const GameStep step = game.step(action);
    EXPECT_FALSE(step.valid) << action;
    EXPECT_FALSE(step.effective) << action;
    EXPECT_EQ(step.reward.value, 0);
    EXPECT_EQ(game.anchor(), before) << action;
  };
  for (const char* action : {"", "search", "search[]", "click[search]", "click[buy now]", "click[next >]",
                             "look[around]", "[search]", "\nsearch[x]", "please search[x]", "search[x", "click[a [b]]"})
    refused(action);
  game.step("search[women hooded sweatshirt]");
  ASSERT_EQ(game.state().results.size(), 50u);
  for (const char* action : {"click[buy now]", "click[description]", "click[large]", "click[< prev]"}) refused(action);
  const std::string other = python_lower(game.shop().product(game.state().results.back()).asin);
  refused("click[" + other + "]");
}

TEST_P(WebShopActions, AreReadAsTheSitesPatternReadsThem) {
  const auto keywords_after = [](const std::string& action) {
    WebShop game = shopping();
    game.step(action);
    return game.state().keywords;
  };
  EXPECT_EQ(keywords_after("search[A b]"), "a b");
  EXPECT_EQ(keywords_after("search[a b] and more"), "a b");
  EXPECT_EQ(keywords_after("search[a]b]"), "a]b");
  EXPECT_EQ(keywords_after("search[a b]\nsearch[c]"), "a b");
  EXPECT_EQ(keywords_after("search[[a]"), "") << "the name would be `search[`";
}

TEST_P(WebShopActions, SearchWorksFromEveryPage) {
  WebShop game = shopping();
  game.step("search[women hooded sweatshirt vintage camo large machine wash cold]");
  game.step(open_hoodie());
  game.step("click[large]");
  game.step("click[features]");
  EXPECT_TRUE(game.step("search[lamp]").valid);
  EXPECT_EQ(game.state().page, ShopPage::Results);
  EXPECT_TRUE(game.state().chosen.empty());
  EXPECT_EQ(game.state().results_page, 1);
  game.step("click[back to search]");
  EXPECT_EQ(game.state(), ShopState{});
}

TEST(WebShopChoices, OfAValueThatTwoOptionsHaveAreOfTheLaterOption) {
  ShopProduct product{.asin = "B1", .title = "Cup", .options = {{"size", {"one", "two"}}, {"style", {"one"}}}};
  product.instruction = "Find me a cup";
  product.instruction_attributes = {"cup"};
  WebShop shop(Shop::make({product}, ShopGoalKind::Synthetic, 0).value(), 0);
  shop.step("search[cup]");
  shop.step("click[b1]");
  EXPECT_EQ(shop.clickables().size(), 8u) << "each text once";
  shop.step("click[one]");
  EXPECT_EQ(shop.state().chosen, (std::vector<std::pair<std::string, std::string>>{{"style", "one"}}));
}

// Random shopping: what a page lists changes something, at least after a page in between; copies shop on alike.
TEST_P(WebShopActions, OfferedByAPageDoWhatTheySay) {
  RandomStream random(3);
  int played = 0;
  for (int trial = 0; trial < testing::trials(200); ++trial) {
    const std::size_t goal = random.below(shop()->num_goals());
    WebShop game(shop(), goal), replayed(shop(), goal);
    for (int turn = 0; turn < 12; ++turn) {
      const auto offered = game.clickables();
      std::string action = "click[" + random.pick(offered) + "]";
      if (game.has_search_bar() || random.chance(0.1))
        action = "search[" + shop()->product(game.goal().product).query + "]";
      const auto copy = game.clone();
      const ShopState before = game.state();
      const GameStep step = game.step(action);
      ++played;
      EXPECT_TRUE(step.valid) << action;
      const bool again = !before.chosen.empty() || step.observation == copy->observation();
      EXPECT_TRUE(step.effective || again) << action;
      EXPECT_EQ(step.effective, !(game.state() == before));
      const GameStep copied = copy->step(action), same = replayed.step(action);
      EXPECT_EQ(copied.observation, step.observation);
      EXPECT_EQ(same.observation, step.observation);
      EXPECT_EQ(copy->anchor(), game.anchor());
      EXPECT_EQ(replayed.state(), game.state());
      EXPECT_EQ(copied.reward.value, step.reward.value);
      EXPECT_GE(step.reward.value, 0);
      EXPECT_LE(step.reward.value, 1);
      if (step.done) break;
    }
  }
  EXPECT_GT(played, testing::trials(200) * 3);
}

}  // namespace
}  // namespace carnot
