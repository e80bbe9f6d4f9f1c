// worlds/webshop/shop.h -- a shop: products, their search engine, and the goals that shoppers come with. Immutable and
// shared by all episodes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/core/base/result.h"
#include "carnot/retrieval/bm25/bm25.h"
#include "carnot/worlds/webshop/goals.h"
#include "carnot/worlds/webshop/products.h"

namespace carnot {

struct ShopOptions {
  std::string task_source{};  ///< folder with WebShop's files
  std::string products_file{};
  std::string attributes_file{};
  std::string human_file{};
  int num_products = 0;  ///< the first ones; 0: all
  ShopGoalKind goals = ShopGoalKind::Synthetic;
  int price_seed = 0;  ///< of the prices drawn from ranges, and of the goals' price bounds

  void fields(FieldVisitor& visit);
};

/// Products that a search finds at most.
inline constexpr int kShopResults = 50;

class Shop {
 public:
  static Result<std::shared_ptr<const Shop>> open(const ShopOptions& options);

  /// The shop of these products. An error where they have no goals of the kind, or too many.
  static Result<std::shared_ptr<const Shop>> make(std::vector<ShopProduct> products, ShopGoalKind kind, int price_seed);

  /// A price for each product; goals in their final order.
  Shop(std::vector<ShopProduct> products, std::vector<double> prices, ShopGoalKind kind, std::vector<GoalKey> goals);

  const ShopProduct& product(int number) const { return products_[static_cast<std::size_t>(number)]; }
  int num_products() const { return static_cast<int>(products_.size()); }
  double price(int number) const { return prices_[static_cast<std::size_t>(number)]; }

  /// The products of a search, best first, as WebShop's search bar finds them: the 50 best by BM25, equal ones by ASIN.
  /// `<r>` as the first word asks for 50 random ones, a function of `draw`; `<a> ...`, `<c> ...` and `<q> ...` for all
  /// with that attribute, category (one word) or query.
  std::vector<int> search(std::string_view keywords, std::uint64_t draw) const;

  /// Goals in WebShop's order: shuffled as random.seed(233); random.shuffle(goals) does.
  std::size_t num_goals() const { return goals_.size(); }
  ShopGoal goal(std::size_t index) const { return make_goal(products_, kind_, goals_[index]); }
  const GoalKey& goal_key(std::size_t index) const { return goals_[index]; }

  /// What WebShop pays for buying the product with these options chosen, in [0, 1].
  double reward(const ShopGoal& goal, int bought, const std::vector<std::string>& chosen) const;

 private:
  template <class Fits>
  std::vector<int> all_that(const Fits& fits) const;

  std::vector<ShopProduct> products_;
  std::vector<double> prices_;
  ShopGoalKind kind_;
  std::vector<GoalKey> goals_;
  std::vector<int> by_asin_;  // the index's documents in this order, so that equal scores are in it, too
  Bm25Index index_;
};

}  // namespace carnot
