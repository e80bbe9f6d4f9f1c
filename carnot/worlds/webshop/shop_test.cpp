#include "carnot/worlds/webshop/shop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/worlds/webshop/splits.h"
#include "testing/shops.h"

namespace carnot {
namespace {

std::vector<std::string> asins_of(const Shop& shop, const std::vector<int>& products) {
  std::vector<std::string> asins;
  for (const int number : products) asins.push_back(shop.product(number).asin);
  return asins;
}

class ShopsGoals : public testing::EveryShop {};
INSTANTIATE_TEST_SUITE_P(Data, ShopsGoals, ::testing::Bool(), testing::data_name);

std::shared_ptr<const Shop> shop_in(const std::string& folder) { return Shop::open({.task_source = folder}).value(); }

std::string without_price(const std::string& instruction) {
  return instruction.substr(0, instruction.rfind(", and price lower than "));
}

TEST(ShopSearch, FindsWhatWebShopsSearchEngineDoesInItsOrder) {
  const auto shop = shop_in(source_path("tests/tasks/large_shop"));
  const auto index = parse_json(read_file(recorded_path("webshop/index.json")).value(), "index.json").value();
  for (const auto& search : index.at("searches")) {
    std::vector<std::string> asins;
    for (const auto& hit : search.at("hits")) asins.push_back(hit.at(0));
    EXPECT_EQ(asins_of(*shop, shop->search(search.at("query").get<std::string>(), 0)), asins) << search.at("query");
  }
  EXPECT_TRUE(shop->search("the of", 0).empty());
}

TEST(ShopSearch, FindsThePublishedProductsThatTheOriginalListsInItsOrder) {
  CARNOT_NEEDS_PUBLISHED_DATA();
  const auto shop = shop_in(published_path("webshop"));
  auto found = shop->search("machine wash men's t-shirts with long sleeve", 0);
  EXPECT_EQ(found.size(), 50u);
  found.resize(10);
  EXPECT_EQ(asins_of(*shop, found),
            (std::vector<std::string>{"B09QQP3356", "B09Q8RD8YN", "B09QGK5XHZ", "B09QQJJ3KM", "B09S3BN15C",
                                      "B09ND9DP7J", "B09T756KQ5", "B09Q67H373", "B09R9YCM6R", "B09KLQLLT2"}));
  EXPECT_TRUE(shop->search("the of", 0).empty());
}

TEST(ShopSearch, KnowsWordsThatAskForMoreThanText) {
  const auto shop = shop_in(source_path("tests/tasks/large_shop"));
  const auto random = shop->search("<r>", 7);
  EXPECT_EQ(random.size(), 50u);
  EXPECT_EQ(std::set<int>(random.begin(), random.end()).size(), 50u);
  EXPECT_EQ(shop->search("<r> whatever", 7), random);
  EXPECT_NE(shop->search("<r>", 8), random);

  const auto count = [&](const auto& fits) {
    int number = 0;
    for (int i = 0; i < shop->num_products(); ++i) number += fits(shop->product(i)) ? 1 : 0;
    return static_cast<std::size_t>(number);
  };
  EXPECT_EQ(shop->search("<c> garden", 0).size(), count([](const ShopProduct& p) { return p.category == "garden"; }));
  EXPECT_EQ(shop->search("<q> console tables", 0).size(),
            count([](const ShopProduct& p) { return p.query == "console tables"; }));
  EXPECT_EQ(shop->search("<a> long lasting", 0).size(),
            count([](const ShopProduct& p) { return std::ranges::count(p.attributes, "long lasting") > 0; }));
  EXPECT_FALSE(shop->search("<a> long lasting", 0).empty());
  EXPECT_TRUE(shop->search("<c>", 0).empty());
}

TEST_P(ShopsGoals, AreOneForEachCombinationOfOptionsInTheOrderOfTheProducts) {
  const auto sold = shop();
  EXPECT_EQ(sold->num_products(), published() ? 1000 : 57);
  EXPECT_EQ(sold->num_goals(), published() ? 6910u : 112u);

  // Before the shuffle: by product, then by choice, each once.
  std::vector<ShopProduct> products;
  std::set<int> wanted;
  for (int i = 0; i < sold->num_products(); ++i) products.push_back(sold->product(i));
  PythonRandom random(0);
  const auto prices = draw_prices(products, random);
  auto goals = list_goals(products, prices, ShopGoalKind::Synthetic, random).value();
  ASSERT_EQ(goals.size(), sold->num_goals());
  for (std::size_t i = 0; i < goals.size(); ++i) {
    wanted.insert(goals[i].product);
    const bool same = i > 0 && goals[i - 1].product == goals[i].product;
    EXPECT_EQ(goals[i].choice, same ? goals[i - 1].choice + 1 : 0);
    EXPECT_TRUE(i == 0 || goals[i - 1].product <= goals[i].product);
  }
  EXPECT_EQ(wanted.size(), published() ? 415u : 34u);
  PythonRandom(233).shuffle(goals);
  for (std::size_t i = 0; i < goals.size(); ++i) ASSERT_EQ(sold->goal_key(i), goals[i]);
}

TEST(ShopGoals, SayOptionsInTheOrderOfTheirNamesAndVaryTheLastOneFastest) {
  ShopProduct product{.asin = "B1", .pricing = {15}, .options = {{"size", {"s", "l"}}, {"color", {"red", "blue"}}}};
  product.instruction = "Find me a cup";
  product.instruction_attributes = {"nice"};
  PythonRandom random(0);
  const auto goals = list_goals({product}, {15}, ShopGoalKind::Synthetic, random).value();
  std::vector<std::string> texts;
  for (const GoalKey& key : goals)
    texts.push_back(without_price(make_goal({product}, ShopGoalKind::Synthetic, key).instruction));
  EXPECT_EQ(texts, (std::vector<std::string>{
                       "Find me a cup with color: red, and size: s", "Find me a cup with color: red, and size: l",
                       "Find me a cup with color: blue, and size: s", "Find me a cup with color: blue, and size: l"}));
}

TEST(ShopGoals, ThatTheExampleOfThePaperShowsIsNumber4261) {
  std::vector<std::size_t> permutation(6910);
  std::iota(permutation.begin(), permutation.end(), std::size_t{0});
  PythonRandom(42).shuffle(permutation);
  EXPECT_EQ(permutation[851], 4261u);
  EXPECT_EQ(ShopOrder(6910, {}).instance(351), 4261u);
}

TEST(ShopGoals, HaveThePapersExampleAsNumber4261OfThePublishedShop) {
  CARNOT_NEEDS_PUBLISHED_DATA();
  const auto shop = shop_in(published_path("webshop"));
  ASSERT_EQ(shop->num_goals(), 6910u);
  const ShopGoal goal = shop->goal(4261);
  EXPECT_EQ(shop->product(goal.product).asin, "B01HQTWL6S");
  EXPECT_EQ(without_price(goal.instruction),
            "Find me machine wash, wash cold women's fashion hoodies & sweatshirts for dry clean, tumble dry with "
            "color: vintage camo, and size: large");
}

TEST_P(ShopsGoals, HaveAPriceBoundAboveThePriceThatAllGoalsOfAProductShare) {
  std::map<int, int> bounds;
  for (std::size_t i = 0; i < shop()->num_goals(); ++i) {
    const GoalKey& key = shop()->goal_key(i);
    const auto [at, added] = bounds.emplace(key.product, key.price_bound);
    EXPECT_EQ(at->second, key.price_bound);
    const double price = shop()->price(key.product);
    if (key.price_bound == 0) {
      EXPECT_GE(price, 980) << "fewer than two bounds are left";
    } else {
      EXPECT_LT(price, key.price_bound);
      EXPECT_EQ(key.price_bound % 10, 0);
      EXPECT_LE(key.price_bound, price + 40) << "one of the first four";
      EXPECT_GT(key.price_bound, price + 10 - 1e-9) << "the larger of two";
    }
    EXPECT_EQ(shop()->goal(i).instruction.ends_with(".00 dollars"), key.price_bound != 0);
  }
}

TEST(ShopGoals, AreDrawnWithThePriceSeed) {
  const auto prices_of = [](int seed) {
    const ShopProduct ranged{.pricing = {10, 20}};
    ShopProduct wanted{.pricing = {10, 500}, .instruction = "Find me", .instruction_attributes = {"a"}};
    const auto shop = Shop::make({ranged, wanted}, ShopGoalKind::Synthetic, seed).value();
    return std::tuple(shop->price(0), shop->price(1), shop->goal(0).price_bound);
  };
  EXPECT_EQ(prices_of(3), prices_of(3));
  EXPECT_NE(prices_of(3), prices_of(4));
  // random.seed(3); random.uniform(10, 20)
  EXPECT_DOUBLE_EQ(std::get<0>(prices_of(3)), 10 + 10 * PythonRandom(3).random());
}

TEST_P(ShopsGoals, OfPeopleAreThoseWithAttributes) {
  const auto asked = shop(ShopGoalKind::Human);
  EXPECT_GT(asked->num_goals(), 0u);
  EXPECT_LE(asked->num_goals(), published() ? 13u : 7u);
  for (std::size_t i = 0; i < asked->num_goals(); ++i) {
    const ShopGoal goal = asked->goal(i);
    EXPECT_FALSE(goal.attributes.empty());
    EXPECT_FALSE(without_price(goal.instruction).ends_with('.'));
    for (const GoalOption& option : goal.options) EXPECT_TRUE(option.name.empty());
  }
}

TEST(ShopOrder, KeepsTheRangesOfThreeCodeBasesApart) {
  for (const ShopSplits splits : {ShopSplits::Ragen, ShopSplits::VerlAgent, ShopSplits::WebShop})
    for (const std::size_t goals : {3u, 40u, 6910u}) {
      ShopOrder order(goals, {.splits = splits, .seed = 5});
      ShopOrder test(goals, {.splits = splits, .validation = ShopValidation::Test, .seed = 5});
      std::set<std::size_t> train, validation, tested;
      for (std::int64_t i = 0; i < 2000; ++i) {
        train.insert(order.train(i));
        validation.insert(order.validation(i));
        tested.insert(test.validation(i));
      }
      for (const std::size_t goal : validation) EXPECT_FALSE(train.contains(goal));
      for (const std::size_t goal : tested) EXPECT_FALSE(train.contains(goal));
      if (goals < 6910) continue;
      EXPECT_EQ(validation.size(), splits == ShopSplits::VerlAgent ? 500u : 1000u);
      EXPECT_EQ(tested.size(), 500u);
      if (splits != ShopSplits::Ragen) {
        EXPECT_GE(*train.begin(), splits == ShopSplits::VerlAgent ? 500u : 1500u);
      }
    }
}

TEST(ShopOrder, DrawsTheGoalsOfAStepWithoutRepeatingAny) {
  ShopOrder order(6910, {.splits = ShopSplits::VerlAgent, .draws_per_step = 16});
  for (std::int64_t step = 0; step < 50; ++step) {
    std::set<std::size_t> goals;
    for (std::int64_t i = 0; i < 16; ++i) goals.insert(order.train(16 * step + i));
    EXPECT_EQ(goals.size(), 16u);
  }
  EXPECT_EQ(ShopOrder(6910, {.splits = ShopSplits::VerlAgent}).train(100), order.train(100));
}

TEST(ShopOrder, PermutesAsNumpyDoes) {
  NumpyRandomState random(0);
  EXPECT_EQ(numpy_permutation(random, 10), (std::vector<std::size_t>{2, 8, 4, 9, 1, 6, 7, 3, 0, 5}));
}

}  // namespace
}  // namespace carnot
