// testing/published_shop.h -- the shop of the 1000 published products, read once a process.
#pragma once

#include <memory>

#include "carnot/env/webshop/shop.h"
#include "testing/paths.h"

namespace carnot::testing {

inline std::shared_ptr<const Shop> published_shop() {
  static const auto shop = Shop::open({.task_source = data_path("webshop")}).value();
  return shop;
}

/// With goals that people wrote.
inline std::shared_ptr<const Shop> published_human_shop() {
  static const auto shop = Shop::open({.task_source = data_path("webshop"), .goals = ShopGoalKind::Human}).value();
  return shop;
}

}  // namespace carnot::testing
