// testing/shops.h -- the shops that tests of WebShop run in: one with 57 invented products (tests/tasks/large_shop),
// and the one with 1000 published products where they are available. Both sell a hooded sweatshirt, in vintage camo and
// large: a goal of four attributes, two options and a price.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "carnot/worlds/webshop/shop.h"
#include "testing/invented_and_published.h"
#include "testing/paths.h"

namespace carnot::testing {

class EveryShop : public InventedAndPublished {
 protected:
  static std::string folder() {
    return published() ? published_path("webshop") : source_path("tests/tasks/large_shop");
  }

  /// Opened once per process.
  static std::shared_ptr<const Shop> shop(ShopGoalKind goals = ShopGoalKind::Synthetic) {
    static std::map<std::pair<bool, ShopGoalKind>, std::shared_ptr<const Shop>> shops;
    auto& opened = shops[{published(), goals}];
    if (!opened) opened = Shop::open({.task_source = folder(), .goals = goals}).value();
    return opened;
  }

  static std::string hoodie() { return published() ? "B01HQTWL6S" : "S40829B"; }
  static std::size_t hoodie_goal() {
    for (std::size_t i = 0; i < shop()->num_goals(); ++i) {
      const ShopGoal goal = shop()->goal(i);
      const auto has = [&](const char* value) {
        return std::ranges::count(goal.options, value, &GoalOption::value) > 0;
      };
      if (shop()->product(goal.product).asin == hoodie() && has("vintage camo") && has("large")) return i;
    }
    ADD_FAILURE() << hoodie();
    return 0;
  }
};

}  // namespace carnot::testing
