#include "carnot/env/webshop/game.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "carnot/base/random.h"
#include "carnot/base/strings.h"
#include "carnot/env/python_text.h"
#include "testing/published_shop.h"
#include "testing/trials.h"

namespace carnot {
namespace {

/// The goal of a product that has every option given.
std::size_t goal_of(const Shop& shop, const std::string& asin, const std::vector<std::string>& values) {
  for (std::size_t i = 0; i < shop.num_goals(); ++i) {
    const ShopGoal goal = shop.goal(i);
    if (shop.product(goal.product).asin != asin) continue;
    const auto has = [&](const std::string& value) {
      return std::ranges::count(goal.options, value, &GoalOption::value) > 0;
    };
    if (std::ranges::all_of(values, has)) return i;
  }
  ADD_FAILURE() << asin;
  return 0;
}

WebShop hoodie() {
  const auto shop = testing::published_shop();
  return {shop, goal_of(*shop, "B01HQTWL6S", {"vintage camo", "large"})};
}

using Texts = std::vector<std::string>;

TEST(WebShopPages, BeginWithTheInstructionAndASearchBar) {
  const WebShop shop = hoodie();
  const std::string& instruction = shop.goal().instruction;
  EXPECT_EQ(shop.observation(), "WebShop [SEP] Instruction: [SEP] " + instruction + " [SEP] Search");
  EXPECT_EQ(shop.clickables(), Texts{"search"});
  EXPECT_TRUE(shop.has_search_bar());
}

TEST(WebShopPages, ListTenResultsAndEndlessNextPages) {
  WebShop shop = hoodie();
  const GameStep found = shop.step("search[Women Hooded Sweatshirt]");
  EXPECT_TRUE(found.valid && found.effective && !found.done);
  const ShopProduct& first = shop.shop().product(shop.state().results.at(0));
  EXPECT_TRUE(
      found.observation.starts_with("Instruction: [SEP] " + shop.goal().instruction +
                                    " [SEP] Back to Search [SEP] Page 1 (Total results: 50) [SEP] Next > [SEP] " +
                                    first.asin + " [SEP] " + first.title + " [SEP] " + first.price_text()))
      << found.observation;
  EXPECT_EQ(shop.clickables().size(), 12u);
  EXPECT_EQ(shop.clickables()[2], python_lower(first.asin));
  for (int page = 2; page <= 7; ++page) EXPECT_TRUE(shop.step("click[Next >]").effective);
  EXPECT_TRUE(
      shop.observation().ends_with(" [SEP] Back to Search [SEP] Page 7 (Total results: 50) [SEP] < Prev [SEP] Next >"));
  EXPECT_EQ(shop.clickables(), (Texts{"back to search", "< prev", "next >"}));
  shop.step("click[< prev]");
  EXPECT_EQ(shop.state().results_page, 6);
}

TEST(WebShopPages, OfAProductListOptionsTitleAndPrice) {
  WebShop shop = hoodie();
  shop.step("search[women hooded sweatshirt vintage camo large machine wash cold]");
  const GameStep opened = shop.step("click[B01HQTWL6S]");
  EXPECT_EQ(
      opened.observation,
      "Instruction: [SEP] " + shop.goal().instruction +
          " [SEP] Back to Search [SEP] < Prev [SEP] size [SEP] small [SEP] medium [SEP] large [SEP] x-large [SEP] "
          "xx-large [SEP] 3x-large [SEP] 4x-large [SEP] color [SEP] black [SEP] charcoal grey [SEP] forest green "
          "[SEP] heather grey [SEP] kelly green [SEP] maroon [SEP] navy blue [SEP] red [SEP] royal blue [SEP] white "
          "[SEP] cotton candy [SEP] sand camo [SEP] vintage camo [SEP] Expression Tees Pug Life Funny Thug Life "
          "Unisex Adult Hoodie [SEP] Price: $36.99 to $48.99 [SEP] Rating: N.A. [SEP] Description [SEP] Features "
          "[SEP] Reviews [SEP] Buy Now");
  const Texts offered = shop.clickables();
  EXPECT_EQ(Texts(offered.begin(), offered.begin() + 7),
            (Texts{"back to search", "< prev", "description", "features", "reviews", "buy now", "small"}));
  const std::string text = shop.observation();
  EXPECT_TRUE(shop.step("click[large]").effective);
  EXPECT_EQ(shop.observation(), text) << "the page does not show what is chosen";
  EXPECT_FALSE(shop.step("click[large]").effective);
}

TEST(WebShopPages, OfDescriptionFeaturesAndReviewsLeadBackToTheProductWithItsChoice) {
  WebShop shop = hoodie();
  shop.step("search[women hooded sweatshirt vintage camo large machine wash cold]");
  shop.step("click[b01hqtwl6s]");
  shop.step("click[large]");
  const std::string head = "Instruction: [SEP] " + shop.goal().instruction + " [SEP] Back to Search [SEP] < Prev";
  EXPECT_EQ(shop.step("click[Reviews]").observation, head);
  shop.step("click[< prev]");
  EXPECT_TRUE(shop.step("click[description]").observation.starts_with(head + " [SEP] Our professionally printed"));
  EXPECT_EQ(shop.clickables(), (Texts{"back to search", "< prev"}));
  EXPECT_FALSE(shop.step("click[description]").valid);
  shop.step("click[< prev]");
  EXPECT_TRUE(
      shop.step("click[features]").observation.starts_with(head + " [SEP] 50% Polyester, 50% Cotton [SEP] Pull"));
  shop.step("click[< prev]");
  EXPECT_EQ(shop.state().chosen.size(), 1u);
  shop.step("click[< prev]");
  EXPECT_EQ(shop.state().page, ShopPage::Results);
  EXPECT_TRUE(shop.state().chosen.empty()) << "leaving the product forgets its options";
}

TEST(WebShopPages, EndWithTheScoreAndWhatWasBought) {
  WebShop shop = hoodie();
  shop.step("search[women hooded sweatshirt vintage camo large machine wash cold]");
  shop.step("click[b01hqtwl6s]");
  shop.step("click[vintage camo]");
  shop.step("click[large]");
  const GameStep bought = shop.step("click[buy now]");
  EXPECT_EQ(
      bought.observation,
      "Thank you for shopping with us! [SEP] Your code: [SEP] None [SEP] (Paste it in your MTurk interface.) [SEP] "
      "Purchased [SEP] asin [SEP] B01HQTWL6S [SEP] options [SEP] {\"color\": \"vintage camo\", \"size\": "
      "\"large\"} [SEP] attrs [SEP] None [SEP] category [SEP] None [SEP] query [SEP] None [SEP] product category "
      "[SEP] None [SEP] Target [SEP] asin [SEP] options [SEP] attrs [SEP] price upper [SEP] instuction text [SEP] "
      "category [SEP] product category [SEP] query [SEP] Goal [SEP] None [SEP] Reward [SEP] Your score (min 0.0, "
      "max 1.0) [SEP] 1.0 [SEP] Reward Details [SEP] None");
  EXPECT_TRUE(bought.done && bought.success);
  EXPECT_EQ(bought.reward.value, 1);
  EXPECT_TRUE(shop.clickables().empty());
  EXPECT_THROW(shop.step("search[x]"), CheckError);
}

TEST(WebShopPages, PayLessForLessThanWhatWasAskedFor) {
  WebShop shop = hoodie();  // four attributes, two options, the price
  shop.step("search[women hooded sweatshirt vintage camo large machine wash cold]");
  shop.step("click[b01hqtwl6s]");
  shop.step("click[black]");
  shop.step("click[large]");
  const GameStep bought = shop.step("click[buy now]");
  EXPECT_DOUBLE_EQ(bought.reward.value, 6.0 / 7);
  EXPECT_FALSE(bought.success);
}

TEST(WebShopActions, ThatTheSiteDoesNotTakeChangeNothing) {
  WebShop shop = hoodie();
  const auto refused = [&](const std::string& action) {
    const std::string before = shop.anchor();
    const GameStep step = shop.step(action);
    EXPECT_FALSE(step.valid) << action;
    EXPECT_FALSE(step.effective) << action;
    EXPECT_EQ(step.reward.value, 0);
    EXPECT_EQ(shop.anchor(), before) << action;
  };
  for (const char* action : {"", "search", "search[]", "click[search]", "click[buy now]", "click[next >]",
                             "look[around]", "[search]", "\nsearch[x]", "please search[x]", "search[x", "click[a [b]]"})
    refused(action);
  shop.step("search[women hooded sweatshirt]");
  ASSERT_EQ(shop.state().results.size(), 50u);
  for (const char* action : {"click[buy now]", "click[description]", "click[large]", "click[< prev]"}) refused(action);
  const std::string other = python_lower(shop.shop().product(shop.state().results.back()).asin);
  refused("click[" + other + "]");
}

TEST(WebShopActions, AreReadAsTheSitesPatternReadsThem) {
  const auto keywords_after = [](const std::string& action) {
    WebShop shop = hoodie();
    shop.step(action);
    return shop.state().keywords;
  };
  EXPECT_EQ(keywords_after("search[A b]"), "a b");
  EXPECT_EQ(keywords_after("search[a b] and more"), "a b");
  EXPECT_EQ(keywords_after("search[a]b]"), "a]b");
  EXPECT_EQ(keywords_after("search[a b]\nsearch[c]"), "a b");
  EXPECT_EQ(keywords_after("search[[a]"), "") << "the name would be `search[`";
}

TEST(WebShopActions, SearchWorksFromEveryPage) {
  WebShop shop = hoodie();
  shop.step("search[women hooded sweatshirt vintage camo large machine wash cold]");
  shop.step("click[b01hqtwl6s]");
  shop.step("click[large]");
  shop.step("click[features]");
  EXPECT_TRUE(shop.step("search[lamp]").valid);
  EXPECT_EQ(shop.state().page, ShopPage::Results);
  EXPECT_TRUE(shop.state().chosen.empty());
  EXPECT_EQ(shop.state().results_page, 1);
  shop.step("click[back to search]");
  EXPECT_EQ(shop.state(), ShopState{});
}

TEST(WebShopActions, WithAValueThatTwoOptionsHaveChooseTheLaterOne) {
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
TEST(WebShopActions, OfferedByAPageDoWhatTheySay) {
  const auto shop = testing::published_shop();
  RandomStream random(3);
  int played = 0;
  for (int trial = 0; trial < testing::trials(200); ++trial) {
    const std::size_t goal = random.below(shop->num_goals());
    WebShop game(shop, goal), replayed(shop, goal);
    for (int turn = 0; turn < 12; ++turn) {
      const auto offered = game.clickables();
      std::string action = "click[" + random.pick(offered) + "]";
      if (game.has_search_bar() || random.chance(0.1))
        action = "search[" + shop->product(game.goal().product).query + "]";
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
