#include "carnot/worlds/webshop/reward.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "carnot/core/base/file.h"
#include "carnot/core/base/random.h"
#include "reference/token_set_ratio.h"
#include "testing/paths.h"
#include "testing/shops.h"
#include "testing/trials.h"

namespace carnot {
namespace {

using RewardCase = nlohmann::ordered_json;

std::vector<std::string> strings_of(const RewardCase& list) { return list.get<std::vector<std::string>>(); }

ShopProduct product_of(const RewardCase& value) {
  ShopProduct product{.query = value.value("query", ""),
                      .product_category = value.value("product_category", ""),
                      .title = value.value("name", ""),
                      .description = value.value("Description", "")};
  product.attributes = value.contains("Attributes") ? strings_of(value.at("Attributes")) : std::vector<std::string>{};
  const RewardCase bullets = value.value("BulletPoints", RewardCase::array());
  if (bullets.is_array()) {
    product.bullets = strings_of(bullets);
  } else {
    for (const char c : bullets.get<std::string>()) product.bullets.emplace_back(1, c);
  }
  return product;
}

std::vector<GoalOption> options_of(const RewardCase& options) {
  std::vector<GoalOption> all;
  for (const auto& [name, value] : options.items())
    all.push_back({.name = options.is_object() ? name : "", .value = value});
  return all;
}

double tolerance_of(const RewardCase& row) { return row.value("abs_tol", 0.0); }

void check_type(const RewardCase& row) {
  const TypeReward reward = type_reward(product_of(row.at("purchased")), product_of(row.at("goal")));
  const RewardCase& expected = row.at("expected");
  const auto check = [&](const char* key, const auto& compare) {
    if (expected.contains(key)) compare(expected.at(key));
  };
  check("r_type", [&](const RewardCase& value) { EXPECT_EQ(reward.factor, value) << row; });
  check("query_match", [&](const RewardCase& value) { EXPECT_EQ(reward.query_match, value) << row; });
  check("category_match", [&](const RewardCase& value) { EXPECT_EQ(reward.category_match, value) << row; });
  check("title_score", [&](const RewardCase& value) {
    EXPECT_NEAR(reward.title_score, value.get<double>(), tolerance_of(row)) << row;
  });
  check("title_score_below",
        [&](const RewardCase& value) { EXPECT_LT(reward.title_score, value.get<double>()) << row; });
}

void check_reward(const RewardCase& row) {
  ShopGoal goal{.attributes = strings_of(row.at("goal").at("attributes")),
                .options = options_of(row.at("goal").at("goal_options")),
                .price_bound = row.at("goal").at("price_upper")};
  std::vector<std::string> chosen;
  for (const auto& [name, value] : row.at("options").items()) chosen.push_back(value);
  const double reward =
      shop_reward(product_of(row.at("purchased")), product_of(row.at("goal")), goal, chosen, row.at("price"));
  EXPECT_NEAR(reward, row.at("expected").at("reward").get<double>(), tolerance_of(row)) << row;
}

TEST(ShopReward, EqualsWebShopsOwnTests) {
  const auto text = read_file(recorded_path("webshop/reward.jsonl"));
  ASSERT_TRUE(text.ok()) << text.error().message;
  std::map<std::string, int> seen;
  for (const auto line : split_lines(*text)) {
    const RewardCase row = RewardCase::parse(line);
    const std::string function = row.at("function");
    ++seen[function];
    if (function == "get_type_reward") {
      check_type(row);
    } else if (function == "get_attribute_reward") {
      const auto wanted = strings_of(row.at("goal").at("attributes"));
      EXPECT_EQ(attribute_hits(product_of(row.at("purchased")), wanted), row.at("expected").at("num_matches")) << row;
    } else if (function == "get_option_reward") {
      EXPECT_EQ(option_hits(strings_of(row.at("purchased_options")), options_of(row.at("goal_options"))),
                row.at("expected").at("num_matches"))
          << row;
    } else if (function == "get_reward") {
      check_reward(row);
    } else if (function == "normalize_color") {
      EXPECT_EQ(normalize_color(row.at("input").get<std::string>()), row.at("expected")) << row;
    } else {
      // WebShop's tables of all products' colours and sizes, of which no page or reward knows the sizes.
      ASSERT_EQ(function, "normalize_color_size");
      for (const auto& [color, expected] : row.at("expected").at("color_mapping").items()) {
        const bool matched = normalize_color(color) != color || color == expected;
        EXPECT_EQ(matched ? std::string(normalize_color(color)) : "not_matched", expected);
      }
    }
  }
  EXPECT_EQ(seen, (std::map<std::string, int>{{"get_attribute_reward", 4},
                                              {"get_option_reward", 5},
                                              {"get_reward", 4},
                                              {"get_type_reward", 11},
                                              {"normalize_color", 6},
                                              {"normalize_color_size", 1}}));
}

TEST(TokenSetRatio, ComparesTextsAsSetsOfWords) {
  EXPECT_EQ(token_set_ratio("b a a", "a B"), 100);
  EXPECT_EQ(token_set_ratio("camo", "color vintage camo"), 100) << "all words of one are words of the other";
  EXPECT_EQ(token_set_ratio("essential oil", "essential oils"), 96);
  EXPECT_EQ(token_set_ratio("", "a"), 0);
  EXPECT_EQ(token_set_ratio("caf\u00E9", "caf"), 100) << "characters up to U+00FF are dropped";
  EXPECT_EQ(token_set_ratio("a-b", "b/a"), 100);
}

TEST(TokenSetRatio, EqualsItsDefinitionOnRandomTexts) {
  RandomStream random(11);
  const auto text = [&] {
    std::string words;
    for (auto n = random.below(5); n > 0; --n) {
      words += words.empty() ? "" : " ";
      for (auto m = 1 + random.below(4); m > 0; --m) words += static_cast<char>('a' + random.below(3));
    }
    return words;
  };
  for (int trial = 0; trial < testing::trials(3000); ++trial) {
    const std::string a = text(), b = text();
    EXPECT_EQ(token_set_ratio(a, b), reference::token_set_ratio(a, b)) << "'" << a << "' '" << b << "'";
  }
}

TEST(OptionHits, CountTheNameOfAnOptionAmongItsWords) {
  EXPECT_EQ(option_hits({"vintage camo"}, {{.name = "color", .value = "vintage camo"}}), 1);
  EXPECT_EQ(option_hits({"sand camo"}, {{.name = "color", .value = "vintage camo"}}), 1) << "both become camo";
  EXPECT_EQ(option_hits({"sand camo"}, {{.value = "vintage tree"}}), 0);
  EXPECT_EQ(option_hits({"black"}, {{.name = "color", .value = "black"}}), 1);
  EXPECT_EQ(option_hits({"dark black"}, {{.name = "color", .value = "charcoal black"}}), 1);
  EXPECT_EQ(option_hits({"large"}, {{.name = "size", .value = "x-large"}}), 1) << "a subset of its words";
  EXPECT_EQ(option_hits({"x-large"}, {{.name = "size", .value = "large"}}), 0);
}

class TypeRewards : public testing::EveryShop {};
INSTANTIATE_TEST_SUITE_P(Data, TypeRewards, ::testing::Bool(), testing::data_name);

TEST_P(TypeRewards, OfTheWantedProductItselfAreAlwaysWhole) {
  for (int number = 0; number < shop()->num_products(); ++number)
    EXPECT_EQ(type_reward(shop()->product(number), shop()->product(number)).factor, 1) << shop()->product(number).title;
}

TEST(TitleNouns, LeaveOutWhatNamesNothing) {
  EXPECT_EQ(title_nouns("Mens D.O.N. Issue 2 Shoes - Off White"),
            (std::vector<std::string>{"d.o.n.", "issue", "shoes", "off", "white"}));
  EXPECT_EQ(title_nouns("2pcs Women's T-Shirt, with (Solid) 4K Pockets!"),
            (std::vector<std::string>{"women", "t", "shirt", "pockets"}));
  EXPECT_TRUE(title_nouns(" - 12 the ").empty());
}

}  // namespace
}  // namespace carnot
