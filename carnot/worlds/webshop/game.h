// worlds/webshop/game.h -- WebShop's site as text: a search page, pages of results, product pages, and the purchase.
//
// An action is `search[keywords]`, from any page, or `click[text]` of what the page offers. Anything else,
// `click[search]` too, changes nothing and earns 0.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carnot/core/env/game.h"
#include "carnot/worlds/webshop/shop.h"

namespace carnot {

enum class ShopPage : std::uint8_t { Search, Results, Item, Description, Features, Reviews, Done };

struct ShopState {
  ShopPage page = ShopPage::Search;
  std::string keywords{};
  std::vector<int> results{};                                 ///< products, best first
  int results_page = 0;                                       ///< from 1 on; ten results each
  int product = -1;                                           ///< that is shown
  std::vector<std::pair<std::string, std::string>> chosen{};  ///< options, in the order in which they were first chosen

  bool operator==(const ShopState&) const = default;
};

class WebShop final : public Game {
 public:
  /// REQUIRES: goal < shop->num_goals().
  WebShop(std::shared_ptr<const Shop> shop, std::size_t goal);

  /// The goal: its number, product, attributes, options and price bound.
  std::string board_json() const override;
  std::vector<ShownMember> members() const override;
  /// "task_score", what WebShop pays, and "purchased": whether something was bought.
  std::map<std::string, double> measures() const override;

  /// The page's texts, ` [SEP] ` between them.
  std::string observation() const override;
  GameStep step(std::string_view action) override;
  /// The page, and the options that are chosen, which it does not show.
  std::string anchor() const override;
  std::unique_ptr<Game> clone() const override { return std::make_unique<WebShop>(*this); }

  bool has_search_bar() const { return state_.page == ShopPage::Search; }
  /// The page's texts, one by one.
  std::vector<std::string> texts() const;
  /// What may be clicked, in lower case: buttons, then products, then option values, each text once.
  std::vector<std::string> clickables() const;

  /// The goal's number and product, for reports.
  std::map<std::string, std::string> info() const;

  const Shop& shop() const { return *shop_; }
  const ShopGoal& goal() const { return goal_; }
  const ShopState& state() const { return state_; }
  double reward() const { return reward_; }  ///< of the purchase; before it 0
  /// Numbers of the products on the present page of results.
  std::vector<int> shown_results() const;

 private:
  std::vector<std::string> receipt() const;
  void add_results(std::vector<std::string>& texts) const;
  void add_item(std::vector<std::string>& texts) const;
  std::vector<std::string> buttons() const;
  bool act(std::string_view action);
  void search(std::string keywords);
  bool click(const std::string& text);
  bool press(const std::string& button);
  void back_to_results();
  void buy();
  const ShopProduct& product() const { return shop_->product(state_.product); }

  std::shared_ptr<const Shop> shop_;
  std::size_t goal_index_;
  ShopGoal goal_;
  ShopState state_{};
  std::uint64_t searches_ = 0;
  double reward_ = 0;
};

}  // namespace carnot
