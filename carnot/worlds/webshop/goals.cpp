#include "carnot/worlds/webshop/goals.h"

#include <algorithm>

namespace carnot {
namespace {

constexpr std::int64_t kMostGoals = 1 << 28;  // of 16 bytes each

int draw_bound(double price, PythonRandom& random) {
  constexpr int kLastBound = 990, kCandidates = 4;
  std::vector<int> above;
  for (int bound = 10; bound <= kLastBound && above.size() < kCandidates; bound += 10)
    if (bound > price) above.push_back(bound);
  if (above.size() < 2) return 0;
  const auto drawn = random.sample(above, 2);
  return std::max(drawn[0], drawn[1]);
}

/// The options in the order of their names.
std::vector<const ShopOption*> sorted_options(const ShopProduct& product) {
  std::vector<const ShopOption*> options;
  for (const ShopOption& option : product.options) options.push_back(&option);
  std::ranges::sort(options, {}, [](const ShopOption* option) -> const std::string& { return option->name; });
  return options;
}

/// How many combinations of options there are, or more than kMostGoals.
std::int64_t combinations(const ShopProduct& product) {
  std::int64_t count = 1;
  for (const ShopOption& option : product.options)
    count = std::min(kMostGoals + 1, count * std::min(kMostGoals, static_cast<std::int64_t>(option.values.size())));
  return count;
}

std::string bound_text(int bound) {
  return bound == 0 ? "" : ", and price lower than " + std::to_string(bound) + ".00 dollars";
}

std::string_view without_periods(std::string_view text) {
  while (text.starts_with('.')) text.remove_prefix(1);
  while (text.ends_with('.')) text.remove_suffix(1);
  return text;
}

}  // namespace

std::vector<double> draw_prices(const std::vector<ShopProduct>& products, PythonRandom& random) {
  std::vector<double> prices;
  prices.reserve(products.size());
  for (const ShopProduct& product : products) {
    const auto& range = product.pricing;
    prices.push_back(range.size() == 1 ? range[0] : range[0] + (range[1] - range[0]) * random.random());
  }
  return prices;
}

Result<std::vector<GoalKey>> list_goals(const std::vector<ShopProduct>& products, const std::vector<double>& prices,
                                        ShopGoalKind kind, PythonRandom& random) {
  std::vector<GoalKey> goals;
  const auto add = [&](std::size_t product, int bound, std::int64_t choice) {
    goals.push_back({.product = static_cast<int>(product), .price_bound = bound, .choice = choice});
  };
  for (std::size_t i = 0; i < products.size(); ++i) {
    const ShopProduct& product = products[i];
    if (kind == ShopGoalKind::Human) {
      for (std::size_t j = 0; j < product.human_instructions.size(); ++j)
        if (!product.human_instructions[j].attributes.empty())
          add(i, draw_bound(prices[i], random), static_cast<std::int64_t>(j));
    } else if (!product.instruction.empty()) {
      const int bound = draw_bound(prices[i], random);
      const std::int64_t count = combinations(product);
      if (count > kMostGoals - static_cast<std::int64_t>(goals.size()))
        return Error{"env: the products have more than " + std::to_string(kMostGoals) +
                     " goals; env.num_products takes fewer"};
      for (std::int64_t choice = 0; choice < count; ++choice) add(i, bound, choice);
    }
  }
  return goals;
}

ShopGoal make_goal(const std::vector<ShopProduct>& products, ShopGoalKind kind, const GoalKey& key) {
  const ShopProduct& product = products[static_cast<std::size_t>(key.product)];
  ShopGoal goal{.product = key.product, .price_bound = key.price_bound == 0 ? kNoPriceBound : key.price_bound};
  if (kind == ShopGoalKind::Human) {
    const HumanInstruction& asked = product.human_instructions[static_cast<std::size_t>(key.choice)];
    goal.instruction = without_periods(asked.text);
    goal.attributes = asked.attributes;
    for (const std::string& value : asked.options) goal.options.push_back({.value = value});
  } else {
    goal.instruction = product.instruction;
    goal.attributes = product.instruction_attributes;
    const auto options = sorted_options(product);
    goal.options.resize(options.size());
    auto rest = static_cast<std::size_t>(key.choice);
    for (std::size_t i = options.size(); i-- > 0;) {
      const auto& values = options[i]->values;
      goal.options[i] = {.name = options[i]->name, .value = values[rest % values.size()]};
      rest /= values.size();
    }
    for (std::size_t i = 0; i < goal.options.size(); ++i)
      goal.instruction += (i == 0 ? " with " : ", and ") + goal.options[i].name + ": " + goal.options[i].value;
  }
  goal.instruction += bound_text(key.price_bound);
  return goal;
}

}  // namespace carnot
