#include "carnot/worlds/webshop/game.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "carnot/core/base/check.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/env/game.h"
#include "carnot/worlds/python/python_text.h"

namespace carnot {
namespace {

constexpr int kResultsPerPage = 10;
constexpr std::string_view kBackToSearch = "back to search", kPrevious = "< prev", kNext = "next >",
                           kBuyNow = "buy now", kSearch = "search", kDescription = "description",
                           kFeatures = "features", kReviews = "reviews";

struct ShopAction {
  std::string_view name;
  std::string_view argument;
};

/// `name[argument]` at the start of the first line, whatever follows it: the last `[` that something precedes and that
/// a
/// `]` follows, with something between them; the last such `]`. (re.match of `(.+)\[(.+)\]`.)
std::optional<ShopAction> parse_action(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  const auto close = line.rfind(']');
  if (close == std::string_view::npos || close < 3) return std::nullopt;
  const auto open = line.rfind('[', close - 2);
  if (open == std::string_view::npos || open == 0) return std::nullopt;
  return ShopAction{.name = line.substr(0, open), .argument = line.substr(open + 1, close - open - 1)};
}

std::string text_list(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + json_text(text);
  return "[" + list + "]";
}

/// As Python's json.dumps writes a dictionary.
std::string chosen_json(const ShopState& state) {
  const auto quoted = [](const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  };
  std::string text;
  for (const auto& [name, value] : state.chosen)
    text += (text.empty() ? "" : ", ") + quoted(name) + ": " + quoted(value);
  return "{" + text + "}";
}

void add_stripped(std::vector<std::string>& texts, std::string_view text) {
  if (!text.empty()) texts.emplace_back(stripped(text));
}

}  // namespace

WebShop::WebShop(std::shared_ptr<const Shop> shop, std::size_t goal)
    : shop_(std::move(shop)), goal_index_(goal), goal_(shop_->goal(goal)) {}

std::string WebShop::board_json() const {
  std::string options;
  for (const GoalOption& option : goal_.options)
    options += (options.empty() ? "[" : ", [") + json_text(option.name) + ", " + json_text(option.value) + "]";
  return "{\"goal\": " + std::to_string(goal_index_) + ", \"asin\": " + json_text(shop_->product(goal_.product).asin) +
         ", \"instruction\": " + json_text(goal_.instruction) + ", \"attributes\": " + text_list(goal_.attributes) +
         ", \"options\": [" + options + "], \"price_bound\": " + python_number({.value = goal_.price_bound}) + "}";
}

std::vector<ShownMember> WebShop::members() const {
  return {{.name = "clickables", .json = text_list(clickables())},
          {.name = "has_search_bar", .json = has_search_bar() ? "true" : "false"}};
}

std::map<std::string, double> WebShop::measures() const {
  return {{"task_score", reward_}, {"purchased", state_.page == ShopPage::Done}};
}

std::map<std::string, std::string> WebShop::info() const {
  return {{"goal", std::to_string(goal_index_)}, {"asin", shop_->product(goal_.product).asin}};
}

std::vector<int> WebShop::shown_results() const {
  const auto begin =
      std::min(state_.results.size(), static_cast<std::size_t>((state_.results_page - 1) * kResultsPerPage));
  const auto end = std::min(state_.results.size(), begin + kResultsPerPage);
  return {state_.results.begin() + static_cast<std::ptrdiff_t>(begin),
          state_.results.begin() + static_cast<std::ptrdiff_t>(end)};
}

std::vector<std::string> WebShop::receipt() const {
  return {"Thank you for shopping with us!",
          "Your code:",
          "None",
          "(Paste it in your MTurk interface.)",
          "Purchased",
          "asin",
          product().asin,
          "options",
          chosen_json(state_),
          "attrs",
          "None",
          "category",
          "None",
          "query",
          "None",
          "product category",
          "None",
          "Target",
          "asin",
          "options",
          "attrs",
          "price upper",
          "instuction text",
          "category",
          "product category",
          "query",
          "Goal",
          "None",
          "Reward",
          "Your score (min 0.0, max 1.0)",
          python_number({.value = reward_}),
          "Reward Details",
          "None"};
}

void WebShop::add_results(std::vector<std::string>& texts) const {
  texts.push_back("Page " + std::to_string(state_.results_page) +
                  " (Total results: " + std::to_string(state_.results.size()) + ")");
  if (state_.results_page > 1) texts.emplace_back("< Prev");
  texts.emplace_back("Next >");
  for (const int number : shown_results()) {
    const ShopProduct& shown = shop_->product(number);
    texts.push_back(shown.asin);
    add_stripped(texts, shown.title);
    texts.push_back(shown.price_text());
  }
}

void WebShop::add_item(std::vector<std::string>& texts) const {
  for (const ShopOption& option : product().options) {
    add_stripped(texts, option.name);
    for (const std::string& value : option.values) add_stripped(texts, value);
  }
  add_stripped(texts, product().title);
  texts.push_back("Price: " + product().price_text());
  texts.insert(texts.end(), {"Rating: N.A.", "Description", "Features", "Reviews", "Buy Now"});
}

std::vector<std::string> WebShop::texts() const {
  if (state_.page == ShopPage::Done) return receipt();
  const std::string instruction(stripped(goal_.instruction));
  if (state_.page == ShopPage::Search) return {"WebShop", "Instruction:", instruction, "Search"};
  std::vector<std::string> texts{"Instruction:", instruction, "Back to Search"};
  if (state_.page == ShopPage::Results) {
    add_results(texts);
    return texts;
  }
  texts.emplace_back("< Prev");
  if (state_.page == ShopPage::Description) add_stripped(texts, product().description);
  if (state_.page == ShopPage::Features)
    for (const std::string& bullet : product().bullets) add_stripped(texts, bullet);
  if (state_.page == ShopPage::Item) add_item(texts);
  return texts;
}

std::string WebShop::observation() const { return join(texts(), " [SEP] "); }

std::string WebShop::anchor() const { return observation() + chosen_json(state_); }

std::vector<std::string> WebShop::buttons() const {
  std::vector<std::string> all;
  const auto add = [&](std::string_view button) { all.emplace_back(button); };
  switch (state_.page) {
    case ShopPage::Done: return all;
    case ShopPage::Search: add(kSearch); return all;
    case ShopPage::Results:
      add(kBackToSearch);
      if (state_.results_page > 1) add(kPrevious);
      add(kNext);
      return all;
    default: break;
  }
  add(kBackToSearch);
  add(kPrevious);
  if (state_.page == ShopPage::Item)
    for (const std::string_view button : {kDescription, kFeatures, kReviews, kBuyNow}) add(button);
  return all;
}

std::vector<std::string> WebShop::clickables() const {
  std::vector<std::string> all = buttons();
  if (state_.page == ShopPage::Results)
    for (const int number : shown_results()) all.push_back(python_lower(shop_->product(number).asin));
  if (state_.page != ShopPage::Item) return all;
  std::unordered_set<std::string> listed(all.begin(), all.end());
  for (const ShopOption& option : product().options)
    for (const std::string& value : option.values)
      if (listed.insert(value).second) all.push_back(value);
  return all;
}

GameStep WebShop::step(std::string_view action) {
  CARNOT_CHECK(state_.page != ShopPage::Done, "the purchase is made");
  const ShopState before = state_;
  GameStep result;
  result.valid = act(action);
  result.effective = !(state_ == before);
  result.observation = observation();
  result.done = state_.page == ShopPage::Done;
  result.reward.value = reward_;
  result.success = result.done && reward_ == 1;
  return result;
}

bool WebShop::act(std::string_view text) {
  const auto action = parse_action(text);
  if (!action) return false;
  std::string argument = python_lower(action->argument);
  if (action->name == "click") return argument != kSearch && click(argument);
  if (action->name != "search") return false;
  search(std::move(argument));
  return true;
}

void WebShop::search(std::string keywords) {
  const std::uint64_t draw = goal_index_ * 1000 + searches_++;
  std::vector<int> found = shop_->search(keywords, draw);
  state_ = {.page = ShopPage::Results, .keywords = std::move(keywords), .results = std::move(found), .results_page = 1};
}

bool WebShop::click(const std::string& text) {
  const auto here = buttons();
  if (std::ranges::find(here, text) != here.end()) return press(text);
  if (state_.page == ShopPage::Results)
    for (const int number : shown_results())
      if (python_lower(shop_->product(number).asin) == text) {
        state_.page = ShopPage::Item;
        state_.product = number;
        return true;
      }
  if (state_.page != ShopPage::Item) return false;
  // Where two options have the value, it is the later option's, as the site's form has it.
  for (auto option = product().options.rbegin(); option != product().options.rend(); ++option) {
    if (std::ranges::find(option->values, text) == option->values.end()) continue;
    const auto same = std::ranges::find(state_.chosen, option->name, &std::pair<std::string, std::string>::first);
    if (same == state_.chosen.end()) {
      state_.chosen.emplace_back(option->name, text);
    } else {
      same->second = text;
    }
    return true;
  }
  return false;
}

bool WebShop::press(const std::string& button) {
  if (button == kBuyNow) {
    buy();
  } else if (button == kBackToSearch) {
    state_ = {};
  } else if (button == kNext) {
    ++state_.results_page;
  } else if (button == kPrevious && state_.page == ShopPage::Results) {
    --state_.results_page;
  } else if (button == kPrevious && state_.page == ShopPage::Item) {
    back_to_results();
  } else if (button == kPrevious) {
    state_.page = ShopPage::Item;
  } else {
    state_.page = button == kDescription ? ShopPage::Description
                  : button == kFeatures  ? ShopPage::Features
                                         : ShopPage::Reviews;
  }
  return true;
}

void WebShop::back_to_results() {
  state_.page = ShopPage::Results;
  state_.product = -1;
  state_.chosen.clear();
}

void WebShop::buy() {
  std::vector<std::string> values;
  for (const auto& [name, value] : state_.chosen) values.push_back(value);
  reward_ = shop_->reward(goal_, state_.product, values);
  state_.page = ShopPage::Done;
}

}  // namespace carnot
