// Any bytes are WebShop's files or messages that name them, and any shop made of them can be shopped in. A zero byte
// ends the products and begins the attributes; another one begins the human instructions.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "carnot/core/base/check.h"
#include "carnot/worlds/webshop/demonstrator.h"
#include "tests/fuzz/target.h"

namespace {

std::string take_up_to_zero(std::string_view& rest) {
  const std::size_t zero = std::min(rest.find('\0'), rest.size());
  const std::string text(rest.substr(0, zero));
  rest.remove_prefix(std::min(zero + 1, rest.size()));
  return text;
}

bool named(const carnot::Status& status, const std::string& name) {
  if (!status.ok()) CARNOT_CHECK(status.error().message.starts_with(name + ":"), status.error().message);
  return status.ok();
}

void shop_in(const std::vector<carnot::ShopProduct>& products, carnot::ShopGoalKind kind) {
  std::int64_t combinations = 1;
  for (const auto& product : products)
    for (const auto& option : product.options)
      combinations =
          std::min<std::int64_t>(1 << 20, combinations * static_cast<std::int64_t>(option.values.size() + 1));
  if (combinations >= 1 << 20) return;  // a list of goals that is too long for this test
  const auto shop = carnot::Shop::make(products, kind, 0);
  if (!shop) return;
  carnot::WebShop game(*shop, 0);
  const carnot::ShopDemonstrator demonstrator(game);
  for (int actions = 0; actions < 12; ++actions) {
    const auto step = game.step(demonstrator.next().action);
    CARNOT_CHECK(step.reward.value >= 0 && step.reward.value <= 1, "a score");
    if (step.done) return;
  }
}

}  // namespace

CARNOT_FUZZ_TARGET(webshop_products) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::istringstream products_file(take_up_to_zero(rest)), attributes(take_up_to_zero(rest)), human{std::string(rest)};
  auto products = carnot::parse_shop_products(products_file, "/nowhere/products", 0);
  if (!products) {
    CARNOT_CHECK(products.error().message.starts_with("/nowhere/products:"), products.error().message);
    return 0;
  }
  if (named(carnot::add_shop_attributes(attributes, "/nowhere/attributes", *products), "/nowhere/attributes"))
    shop_in(*products, carnot::ShopGoalKind::Synthetic);
  if (named(carnot::add_human_instructions(human, "/nowhere/human", *products), "/nowhere/human"))
    shop_in(*products, carnot::ShopGoalKind::Human);
  return 0;
}
