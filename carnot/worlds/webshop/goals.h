// worlds/webshop/goals.h -- what a shopper is asked to buy: WebShop's synthetic goals, and those that people wrote.
//
// A synthetic goal is a product's instruction with one value of each of its options: as many goals as there are
// combinations. Its price bound is one for all goals of a product: the larger of two drawn from the first four
// multiples of ten, up to 990, above the price; empty if there are fewer than two.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/worlds/python/python_random.h"
#include "carnot/worlds/webshop/products.h"

namespace carnot {

enum class ShopGoalKind : std::uint8_t { Synthetic, Human };

inline constexpr double kNoPriceBound = 1e6;

struct GoalOption {
  std::string name{};  ///< empty if a person wrote the goal
  std::string value{};
};

struct ShopGoal {
  int product = 0;            ///< the one that the goal was made from
  std::string instruction{};  ///< what the shopper reads
  std::vector<std::string> attributes{};
  std::vector<GoalOption> options{};
  double price_bound = kNoPriceBound;
};

/// A goal by what it is made of.
struct GoalKey {
  int product = 0;
  int price_bound = 0;      ///< 0: none
  std::int64_t choice = 0;  ///< which combination of options, the last option changing fastest; which human instruction

  bool operator==(const GoalKey&) const = default;
};

/// One price a product: where the file has a range, drawn from it.
std::vector<double> draw_prices(const std::vector<ShopProduct>& products, PythonRandom& random);

/// All goals in the order of the products. An error where there are too many to list.
Result<std::vector<GoalKey>> list_goals(const std::vector<ShopProduct>& products, const std::vector<double>& prices,
                                        ShopGoalKind kind, PythonRandom& random);

ShopGoal make_goal(const std::vector<ShopProduct>& products, ShopGoalKind kind, const GoalKey& key);

}  // namespace carnot
