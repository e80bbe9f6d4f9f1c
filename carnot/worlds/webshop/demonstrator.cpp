#include "carnot/worlds/webshop/demonstrator.h"

#include <algorithm>

#include "carnot/worlds/python/python_text.h"
#include "carnot/worlds/webshop/reward.h"

namespace carnot {
namespace {

/// Without what would end or split the brackets of an action.
std::string search_words(std::string_view text) {
  std::string words;
  for (const char c : python_lower(text)) words += c == '[' || c == ']' || c == '\n' || c == '|' ? ' ' : c;
  constexpr std::string_view kFindMe = "find me ";
  return words.starts_with(kFindMe) ? words.substr(kFindMe.size()) : words;
}

/// The words of the instruction before its options and its price.
std::string goal_words(const WebShop& shop) {
  const ShopProduct& product = shop.shop().product(shop.goal().product);
  if (!product.instruction.empty() && shop.goal().instruction.starts_with(product.instruction))
    return search_words(product.instruction);
  const std::string& text = shop.goal().instruction;
  return search_words(text.substr(0, text.rfind(", and price lower than ")));
}

std::size_t rank_of(const Shop& shop, const std::string& query, int product) {
  const auto found = shop.search(query, 0);
  return static_cast<std::size_t>(std::ranges::find(found, product) - found.begin());
}

/// The value of the product's options that the wanted one means, with its option's name.
std::optional<std::pair<std::string, std::string>> meant_option(const ShopProduct& product, const GoalOption& wanted) {
  std::optional<std::pair<std::string, std::string>> similar;
  for (const ShopOption& option : product.options) {
    if (!wanted.name.empty() && option.name != wanted.name) continue;
    for (const std::string& value : option.values) {
      if (value == wanted.value) return std::pair{option.name, value};
      if (!similar && option_hits({value}, {wanted}) > 0) similar = std::pair{option.name, value};
    }
  }
  return similar;
}

}  // namespace

ShopDemonstrator::ShopDemonstrator(const WebShop& shop) : shop_(shop) {
  const ShopProduct& product = shop.shop().product(shop.goal().product);
  std::size_t best = kShopResults + 1;
  for (const std::string& query :
       {goal_words(shop), search_words(product.title), search_words(product.indexed_text())}) {
    const std::size_t rank = rank_of(shop.shop(), query, shop.goal().product);
    if (rank >= best) continue;
    best = rank;
    query_ = query;
    if (rank < 10) break;
  }
  for (const GoalOption& wanted : shop.goal().options) {
    const auto meant = meant_option(product, wanted);
    const auto same_name = [&](const auto& option) { return option.first == meant->first; };
    if (meant && std::ranges::none_of(options_, same_name)) options_.push_back(*meant);
  }
}

std::string ShopDemonstrator::asin() const { return python_lower(shop_.shop().product(shop_.goal().product).asin); }

ShopDemonstrator::Move ShopDemonstrator::search() const {
  return {.thought = python_lower(shop_.goal().instruction), .action = "search[" + query_ + "]"};
}

std::optional<std::pair<std::string, std::string>> ShopDemonstrator::missing_option() const {
  const auto& chosen = shop_.state().chosen;
  for (const auto& option : options_)
    if (std::ranges::find(chosen, option) == chosen.end()) return option;
  return std::nullopt;
}

ShopDemonstrator::Move ShopDemonstrator::next() const {
  const ShopState& state = shop_.state();
  const bool found = state.product == shop_.goal().product;
  switch (state.page) {
    case ShopPage::Done:
    case ShopPage::Search: return search();
    case ShopPage::Item:
      if (!found) return search();
      if (const auto option = missing_option())
        return {.thought = "I want " + option->first + ": " + option->second + ".",
                .action = "click[" + option->second + "]"};
      return {.thought = "All options are chosen.", .action = "click[buy now]"};
    case ShopPage::Description:
    case ShopPage::Features:
    case ShopPage::Reviews:
      if (!found) return search();
      return {.thought = "Back to the product.", .action = "click[< prev]"};
    case ShopPage::Results: break;
  }
  const auto shown = shop_.shown_results();
  if (std::ranges::find(shown, shop_.goal().product) != shown.end())
    return {.thought = asin() + " fits.", .action = "click[" + asin() + "]"};
  const auto begin =
      static_cast<std::ptrdiff_t>(std::min(state.results.size(), static_cast<std::size_t>(state.results_page) * 10));
  if (std::find(state.results.begin() + begin, state.results.end(), shop_.goal().product) != state.results.end())
    return {.thought = "None of these fits.", .action = "click[next >]"};
  return search();
}

ShopDemonstrator::Move ShopDemonstrator::careless(RandomStream& random) const {
  std::vector<std::string> texts = shop_.clickables();
  std::erase(texts, "search");
  const std::string text = texts.empty() ? "" : random.pick(texts);
  if (text.empty()) {
    const ShopProduct& product = shop_.shop().product(shop_.goal().product);
    return {.thought = "I try " + product.query + ".", .action = "search[" + product.query + "]"};
  }
  return {.thought = "I try " + text + ".", .action = "click[" + text + "]"};
}

}  // namespace carnot
